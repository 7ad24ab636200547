//! What makes two texts one key.

use crate::input::InputArguments;
use clap::{Args, ValueEnum};
use lately_stream::options::{KeyFormat, Options};
use lately_stream::session::Reading;

/// What makes two texts one key.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub struct FormArguments {
    /// What key fields are, so that all spellings of one are one key. `epc`: a tag (hex, base64, b'..', tag
    /// URI); `ip`: an address (2001:db8::1 and 2001:0DB8:0:..:1, 10.0.0.1 and ::ffff:10.0.0.1); `number`: a
    /// decimal number by its value (1, 1.0 and 1e0); `uuid`. What cannot be read so is compared as text
    #[arg(long, value_enum, default_value_t = KeyForm::Text)]
    key_format: KeyForm,

    /// `fold`: letters of either case are the same
    #[arg(long, value_enum, default_value_t = KeyCase::Exact)]
    key_case: KeyCase,
}

/// `--key-format`.
#[derive(Clone, Copy, ValueEnum)]
pub enum KeyForm {
    Text,
    Epc,
    Ip,
    Number,
    Uuid,
}

/// `--key-case`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeyCase {
    Exact,
    Fold,
}

impl KeyForm {
    fn format(self) -> KeyFormat {
        match self {
            Self::Text => KeyFormat::Text,
            Self::Epc => KeyFormat::Epc,
            Self::Ip => KeyFormat::Ip,
            Self::Number => KeyFormat::Number,
            Self::Uuid => KeyFormat::Uuid,
        }
    }
}

impl FormArguments {
    /// How keys and times are read, for the identity of a state.
    pub fn reading(&self, input: &InputArguments) -> Reading {
        let reading = input.reading(self.key_format.format().name());
        let fold = (self.key_case == KeyCase::Fold).then_some("fold");
        reading.with("key-case", fold)
    }

    /// Asks for it.
    pub fn apply(&self, options: &mut Options) {
        options.key_format = self.key_format.format();
        options.fold_case = self.key_case == KeyCase::Fold;
    }
}

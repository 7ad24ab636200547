//! Takes the records of a chunk as they are found.

use crate::record::field::{Fields, Scratch};
use crate::record::texts::Texts;
use crate::record::value::Row;
use crate::record::{Batch, Enveloped, Extra, Fault, Kind, Record, Time};
use crate::scan::lines::Span;
use lately::Digest;

/// Takes the records as they are found.
pub(crate) struct Emit<'a> {
    pub(crate) fields: &'a Fields,
    /// The records were cut out of an array or a document and bring no line end of their own.
    pub(crate) detached: bool,
    records: &'a mut Vec<Record>,
    extras: &'a mut Vec<Extra>,
    texts: &'a mut Texts,
    bands: &'a mut Vec<f64>,
    faults: &'a mut Vec<(u32, Fault)>,
    further: &'a mut Vec<(u32, u128)>,
    scratch: &'a mut Scratch,
    /// The records that are too long, by their index.
    overlong: &'a mut Vec<usize>,
    longest: usize,
    want_extras: bool,
    want_texts: bool,
}

impl<'a> Emit<'a> {
    /// Takes records into `batch`, which is emptied but for its bytes; those are handed back, to be
    /// read meanwhile. `longest` is what a record may have in bytes.
    pub(crate) fn new(
        batch: &'a mut Batch,
        fields: &'a Fields,
        longest: usize,
        scratch: &'a mut Scratch,
        overlong: &'a mut Vec<usize>,
    ) -> (Self, &'a [u8]) {
        batch.records.clear();
        batch.extras.clear();
        batch.bands.clear();
        batch.texts.begin(fields.columns.as_ref());
        batch.faults.clear();
        batch.further.clear();
        overlong.clear();
        let emit = Self {
            fields,
            detached: false,
            records: &mut batch.records,
            extras: &mut batch.extras,
            texts: &mut batch.texts,
            bands: &mut batch.bands,
            faults: &mut batch.faults,
            further: &mut batch.further,
            scratch,
            overlong,
            longest,
            want_extras: fields.have_extras(),
            want_texts: fields.columns.is_some(),
        };
        (emit, &batch.bytes)
    }

    /// A record whose fields can be looked up.
    #[inline]
    pub(crate) fn row(&mut self, span: Span, row: &impl Row) {
        if self.fields.envelope.is_empty() {
            return self.read(span, row);
        }
        let (all, envelope) = (self.fields, self.scratch.envelope.clone());
        let fields = &all.envelope;
        self.read(span, &Enveloped { row, envelope: envelope.as_deref(), fields });
    }

    #[inline]
    fn read(&mut self, span: Span, row: &impl Row) {
        let parsed = self.fields.read(row, self.scratch);
        if let Some(fault) = parsed.fault {
            self.faults.push((self.records.len() as u32, fault));
        }
        if !self.scratch.further.is_empty() {
            let at = self.records.len() as u32;
            self.further.extend(self.scratch.further.drain(..).map(|number| (at, number)));
        }
        if self.want_extras {
            self.extras.push(self.fields.extra(row, self.scratch));
        }
        if self.want_texts {
            self.fields.keep_texts(row, self.scratch, self.texts);
        }
        if !self.fields.bands.is_empty() {
            self.fields.push_bands(row, self.scratch, self.bands);
        }
        self.records.push(record(span, parsed.kind, parsed.digest, parsed.time));
    }

    /// A record that is nothing but its key.
    #[inline]
    pub(crate) fn keyed(&mut self, span: Span, key: &[u8]) {
        let digest = self.fields.digester.digest(key);
        self.records.push(record(span, Kind::Keyed, digest, None));
    }

    /// A header or an aside.
    pub(crate) fn other(&mut self, span: Span, kind: Kind) {
        if self.want_extras {
            self.extras.push(Extra::default());
        }
        if self.want_texts {
            self.texts.end(None);
        }
        self.bands.extend(self.fields.bands.iter().map(|_| f64::NAN));
        self.records.push(record(span, kind, Digest::new(0, 0), None));
    }

    /// A record that cannot be read.
    pub(crate) fn dead(&mut self, span: Span, reason: String) {
        self.faults.push((self.records.len() as u32, Fault { field: None, reason }));
        self.other(span, Kind::Invalid);
    }

    /// The beginning of a record that the run was told to end in: forwarded, as its rest will be.
    pub(crate) fn left(&mut self, span: Span) {
        let reason = "the run was told to end in the middle of this record".into();
        self.faults.push((self.records.len() as u32, Fault { field: None, reason }));
        self.other(span, Kind::KeyMissing);
    }

    /// A record of more than the allowed length, here in full; it is shortened later.
    pub(crate) fn overlong(&mut self, span: Span, length: usize) {
        self.overlong.push(self.records.len());
        self.cut_short(span, length as u64);
    }

    /// The beginning of a record of `length` bytes, which was too long to hold.
    pub(crate) fn cut_short(&mut self, span: Span, length: u64) {
        let limit = self.longest;
        self.dead(
            span,
            format!(
                "{length} bytes long, more than the {limit} allowed; only its beginning is kept"
            ),
        );
    }

    /// Forgets all records so far, to begin again.
    pub(crate) fn restart(&mut self) {
        self.records.clear();
        self.extras.clear();
        self.texts.restart();
        self.bands.clear();
        self.faults.clear();
        self.further.clear();
        self.overlong.clear();
    }
}

fn record(span: Span, kind: Kind, digest: Digest, time: Option<Time>) -> Record {
    let Span { start, end, line } = span;
    Record { start: start as u32, end: end as u32, line, kind, digest, time }
}

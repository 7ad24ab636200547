//! What the Java class `lately.flink.Filter` calls: a session of `lately_stream`, which judges as the program does.
//! There are no rules here.

mod fault;
mod sessions;
mod terms;

use fault::{Fault, Throw};
use jni::objects::{JByteArray, JClass, JLongArray, JString};
use jni::sys::{jint, jlong};
use jni::{EnvUnowned, jni_mangle};
use lately::Filter as _;
use lately_stream::judge::Decide as _;
use lately_stream::judge::class::Class;

/// The classes of records by their numbers, which are those of the Java enum `Outcome`.
const CLASSES: [Class; 4] = [Class::Fresh, Class::Duplicate, Class::Late, Class::Skewed];

/// Makes a filter of these terms: its number.
#[jni_mangle("lately.flink.Filter")]
pub extern "system" fn open<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    terms: JString<'a>,
) -> jlong {
    env.with_env(|env| {
        let spec = terms::read(&terms.try_to_string(env)?)?;
        let dedup = spec.build().map_err(|error| Fault::Argument(error.to_string()))?;
        Ok(sessions::open(dedup, &spec))
    })
    .resolve::<Throw>()
}

/// A filter that was saved, with these terms: its number.
#[jni_mangle("lately.flink.Filter")]
pub extern "system" fn resume<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    terms: JString<'a>,
    state: JByteArray<'a>,
) -> jlong {
    env.with_env(|env| {
        let spec = terms::read(&terms.try_to_string(env)?)?;
        let state = env.convert_byte_array(&state)?;
        let dedup = spec.resume_bytes(&state).map_err(Fault::State)?;
        Ok(sessions::open(dedup, &spec))
    })
    .resolve::<Throw>()
}

/// Lets go of a filter.
#[jni_mangle("lately.flink.Filter")]
pub extern "system" fn close<'a>(mut env: EnvUnowned<'a>, _: JClass<'a>, number: jlong) {
    env.with_env(|_| -> Result<(), Fault> {
        sessions::close(number);
        Ok(())
    })
    .resolve::<Throw>();
}

/// Judges a record by its key and remembers the key: the number of its class. A time is in nanoseconds since 1970; the smallest
/// stands for one that is missing.
#[jni_mangle("lately.flink.Filter")]
pub extern "system" fn observe<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
    key: JByteArray<'a>,
    time: jlong,
) -> jint {
    env.with_env(|env| {
        let key = env.convert_byte_array(&key)?;
        sessions::with(number, |session| {
            let time = session.timed.then_some(time);
            let class = session.dedup.observe(&key, time);
            let at = CLASSES.iter().position(|known| *known == class);
            // A session without held or changed records has no other classes.
            at.and_then(|at| jint::try_from(at).ok())
                .ok_or_else(|| Fault::State(format!("no class for {}", class.name())))
        })
    })
    .resolve::<Throw>()
}

/// The state of a filter, as `lately dedup --state` has it in its file.
#[jni_mangle("lately.flink.Filter")]
pub extern "system" fn save<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) -> JByteArray<'a> {
    env.with_env(|env| {
        let bytes = sessions::with(number, |session| Ok(session.dedup.to_bytes()))?;
        Ok(env.byte_array_from_slice(&bytes)?)
    })
    .resolve::<Throw>()
}

/// What a filter takes and what it had to give up: bytes, keys forgotten, keys not remembered.
#[jni_mangle("lately.flink.Filter")]
pub extern "system" fn numbers<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    number: jlong,
) -> JLongArray<'a> {
    env.with_env(|env| {
        let numbers = sessions::with(number, |session| {
            let overload = session.dedup.overload();
            let memory = session.dedup.filter().memory() as u64;
            Ok([memory, overload.forgotten, overload.refused].map(u64::cast_signed))
        })?;
        let array = JLongArray::new(env, numbers.len())?;
        array.set_region(env, 0, &numbers)?;
        Ok(array)
    })
    .resolve::<Throw>()
}

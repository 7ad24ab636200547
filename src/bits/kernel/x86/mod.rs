//! x86-64: SSE2, which all have, AVX2 with bit instructions, and AVX-512.
#![allow(unsafe_code)]

mod avx2;
mod avx512;
mod sse2;

use self::avx2::Avx2;
use self::avx512::Avx512;
pub(crate) use self::sse2::Sse2;
use super::{Kernel, Level, Scalar, Work};
use crate::bits::lines::Line;
use core::arch::x86_64::*;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The index of the best level; 0: not looked yet.
static FOUND: AtomicU8 = AtomicU8::new(0);

#[inline(always)]
pub(super) fn best() -> Level {
    const AVX2: u8 = Level::Avx2 as u8;
    const SSE2: u8 = Level::Sse2 as u8;
    match FOUND.load(Relaxed) {
        0 => look(),
        SSE2 => Level::Sse2,
        AVX2 => Level::Avx2,
        _ => Level::Avx512,
    }
}

/// Has the processor this level? `false` where nobody has looked yet.
#[inline(always)]
fn has(level: Level) -> bool {
    level as u8 <= FOUND.load(Relaxed)
}

/// [`use_no_more_than`](super::use_no_more_than): SSE2 is the least there is.
#[cfg(fuzzing)]
pub(super) fn use_no_more_than(level: u8) {
    FOUND.store(level.clamp(Level::Sse2 as u8, look() as u8), Relaxed);
}

#[cold]
#[allow(unused_unsafe)]
fn look() -> Level {
    const OS_SAVES_REGISTERS: u32 = 1 << 27;
    const POPCNT: u32 = 1 << 23;
    const LZCNT: u32 = 1 << 5;
    const BMI1_AVX2_BMI2: u32 = 1 << 3 | 1 << 5 | 1 << 8;
    const AVX512_F_CD_BW_VL: u32 = 1 << 16 | 1 << 28 | 1 << 30 | 1 << 31;
    const AVX512_VPOPCNTDQ: u32 = 1 << 14;
    // SAFETY: every x86_64 processor has `cpuid`, which only reads; one whose system saves the registers of
    // vectors has `xgetbv`.
    let (avx2, avx512) = unsafe {
        let (one, most) = (__cpuid(1), __cpuid(0).eax);
        let extended = __cpuid(0x8000_0000).eax > 0x8000_0000;
        let lzcnt = extended && __cpuid(0x8000_0001).ecx & LZCNT == LZCNT;
        let basic = most >= 7 && lzcnt && one.ecx & POPCNT == POPCNT;
        if !basic || one.ecx & OS_SAVES_REGISTERS == 0 {
            (false, false)
        } else {
            let (saved, seven) = (saved_registers(), __cpuid_count(7, 0));
            let avx2 = saved & 6 == 6 && seven.ebx & BMI1_AVX2_BMI2 == BMI1_AVX2_BMI2;
            let foundation = seven.ebx & AVX512_F_CD_BW_VL == AVX512_F_CD_BW_VL;
            let counts = seven.ecx & AVX512_VPOPCNTDQ == AVX512_VPOPCNTDQ;
            let avx512 = saved & 0xE6 == 0xE6 && foundation && counts;
            (avx2, avx2 && avx512)
        }
    };
    let level = match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Sse2,
    };
    FOUND.store(level as u8, Relaxed);
    level
}

#[target_feature(enable = "xsave")]
fn saved_registers() -> u64 {
    // SAFETY: register 0 is there wherever the instruction is.
    unsafe { _xgetbv(0) }
}

#[inline(always)]
pub(super) fn run<T: Work>(level: Level, work: T) -> T::Result {
    match if level as u8 > best() as u8 { best() } else { level } {
        // SAFETY: the processor has what the function is compiled for: no level is better than the best.
        Level::Avx512 => unsafe { avx512(work) },
        // SAFETY: as before.
        Level::Avx2 => unsafe { avx2(work) },
        Level::Sse2 => work.run(Sse2::HERE),
        Level::Scalar => work.run(Scalar),
    }
}

/// [`Level::arrive`]: what it takes is in registers, which work of several words would not be.
#[inline(always)]
pub(super) fn arrive(
    level: Level,
    lines: &mut [Line],
    (a, b): (usize, usize),
    lane: u16,
    renews: bool,
) -> Option<bool> {
    match level {
        // SAFETY: the processor has what the function is compiled for.
        Level::Avx512 if has(level) => unsafe { arrive_512(lines, a, b, lane, renews) },
        // SAFETY: as before.
        Level::Avx2 if has(level) => unsafe { arrive_256(lines, a, b, lane, renews) },
        _ => arrive_otherwise(level, lines, (a, b), lane, renews),
    }
}

/// # Safety
/// The processor must have these features.
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512cd,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt,lzcnt"
)]
unsafe fn arrive_512(
    lines: &mut [Line],
    a: usize,
    b: usize,
    lane: u16,
    renews: bool,
) -> Option<bool> {
    super::arrive(Avx512(()), lines, (a, b), lane, renews)
}

/// # Safety
/// The processor must have these features.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn arrive_256(
    lines: &mut [Line],
    a: usize,
    b: usize,
    lane: u16,
    renews: bool,
) -> Option<bool> {
    super::arrive(Avx2(()), lines, (a, b), lane, renews)
}

#[inline(never)]
fn arrive_otherwise(
    level: Level,
    lines: &mut [Line],
    places: (usize, usize),
    lane: u16,
    renews: bool,
) -> Option<bool> {
    run(level, super::Arrive { lines, places, lane, renews })
}

/// [`Level::is_in_either`], as [`arrive`].
#[inline(always)]
pub(super) fn is_in_either(level: Level, a: &Line, b: &Line, lane: u16) -> bool {
    match level {
        // SAFETY: as in `arrive`.
        Level::Avx512 if has(level) => unsafe { is_in_either_512(a, b, lane) },
        // SAFETY: as in `arrive`.
        Level::Avx2 if has(level) => unsafe { is_in_either_256(a, b, lane) },
        _ => is_in_either_otherwise(level, a, b, lane),
    }
}

/// # Safety
/// The processor must have these features.
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512cd,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt,lzcnt"
)]
unsafe fn is_in_either_512(a: &Line, b: &Line, lane: u16) -> bool {
    Avx512(()).is_in_either(a, b, lane)
}

/// # Safety
/// The processor must have these features.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn is_in_either_256(a: &Line, b: &Line, lane: u16) -> bool {
    Avx2(()).is_in_either(a, b, lane)
}

#[inline(never)]
fn is_in_either_otherwise(level: Level, a: &Line, b: &Line, lane: u16) -> bool {
    run(level, super::Either { a, b, lane })
}

/// # Safety
/// The processor must have these features.
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512cd,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt,lzcnt"
)]
unsafe fn avx512<T: Work>(work: T) -> T::Result {
    work.run(Avx512(()))
}

/// # Safety
/// The processor must have these features.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn avx2<T: Work>(work: T) -> T::Result {
    work.run(Avx2(()))
}

#[repr(align(64))]
struct Lanes([u16; 32]);

/// The number of each lane's entry; the lanes that are none count as the first.
static PLACES: Lanes = {
    let mut places = [0; 32];
    let mut at = 4;
    while at < 32 {
        places[at] = at as u16 - 3;
        at += 1;
    }
    Lanes(places)
};

/// The same place, of which the compiler does not know that it is the same: so what is there is read again, and at once.
#[inline(always)]
#[expect(clippy::pointers_in_nomem_asm_block, reason = "there is no instruction that reads there")]
fn again<T>(place: &mut Line) -> *mut T {
    let mut at: *mut T = place.as_mut_ptr().cast();
    // SAFETY: there is no instruction.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) at, options(pure, nomem, nostack, preserves_flags));
    }
    at
}

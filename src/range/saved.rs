//! Range windows as bytes.

use super::block::Block;
use super::flat::Flat;
use super::level::{Entry, Level};
use super::size::{Form, Promise, Size};
use super::table::{Items, RangeTable, each_form};
use super::tiers::Tiers;
use super::word::{BLOCK, Word};
use super::{RangePlan, RangeSpec, RangeWindow};
use crate::any::{FILTER, RANGE_FORMS, RANGE_TABLES};
use crate::codec::{self, Format, Reader, Writer};
use crate::spec::terms::Own;
use crate::{Digester, Overload, PlanError, RestoreError, SnapshotError, Terms, Window};
use alloc::vec::Vec;
use core::ops::ControlFlow;

/// Tables that a window may have before its active one. Each has twice the keys of the one before, or more, but under a limit, where
/// few fit.
const MOST_OLDER: u32 = 64;

/// How snapshots name a range window, among the structures of point filters.
const RANGE_WINDOW: u8 = 128;

impl RangeSpec {
    fn write(&self, out: &mut Writer<'_>) {
        Digester::write_algorithm(out);
        out.u8(RANGE_WINDOW);
        self.terms.write(Own::Range { interval: self.interval }, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Digester::check_algorithm(input)?;
        if input.u8()? != RANGE_WINDOW {
            return Err(SnapshotError::Invalid("not a range window"));
        }
        match Terms::read(Own::Range { interval: 0 }, input)? {
            (terms, Own::Range { interval }) => Ok(Self { terms, interval }),
            (_, Own::Points(_)) => Err(SnapshotError::Invalid("not a range window")),
        }
    }
}

impl RangeWindow {
    /// The window as bytes, which [`RangeWindow::restore`] reads. Layout: `docs/format.md`.
    ///
    /// *Cost:* one pass; about as many bytes as [`RangeWindow::memory`]. [`RangeWindow::snapshot_to`] does not
    /// hold them all at once.
    pub fn snapshot(&self) -> Vec<u8> {
        codec::to_vec(self.format(), |out| self.write_body(out))
    }

    /// The length of [`RangeWindow::snapshot`], exactly.
    pub fn snapshot_len(&self) -> u64 {
        codec::length(|out| self.write_body(out))
    }

    /// Hands the bytes of [`RangeWindow::snapshot`] to a sink, a part at a time; see
    /// [`AnyFilter::snapshot_to`](crate::AnyFilter::snapshot_to).
    ///
    /// # Errors
    /// The sink's first error; it is not called again after that.
    pub fn snapshot_to<E>(&self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        codec::write(self.format(), sink, |out| self.write_body(out))
    }

    /// Writes the snapshot into the body of another envelope.
    pub fn write(&self, out: &mut Writer<'_>) {
        out.envelope(self.format(), |out| self.write_body(out));
    }

    /// Windows that are planned in levels are written as they were before there were other tables: version 1 where there is one
    /// table for the whole rate, or 5.
    fn format(&self) -> Format {
        match (self.plan.size.form(), self.active.size.promise) {
            (Form::Flat, _) => RANGE_FORMS,
            (Form::Levels, Promise::AsPlanned) => FILTER,
            (Form::Levels, Promise::Whatever) => RANGE_TABLES,
        }
    }

    fn write_body(&self, out: &mut Writer<'_>) {
        let version = self.format().version;
        self.plan.spec.write(out);
        if version == FILTER.version {
            return self.active.write(out);
        }
        out.u64(self.newest);
        self.overload.write(out);
        out.u32(self.older.len() as u32);
        for table in self.older.iter().chain([&self.active]) {
            let terms = &table.spec.terms;
            out.u64(terms.window.capacity());
            out.f64(terms.fpr);
            out.flag(terms.memory.is_some());
            out.u64(terms.memory.unwrap_or(0));
            if version == RANGE_FORMS.version {
                out.flag(table.size.form() == Form::Flat);
            }
            table.write(out);
        }
    }

    /// A window from the bytes of [`RangeWindow::snapshot`]: the same answers from there on.
    ///
    /// # Errors
    /// [`SnapshotError`] for bytes that are cut off, damaged, foreign, or of a later version.
    /// Nothing is allocated that the bytes do not back up, but for an empty window of their plan's first
    /// few levels, or flat tables of 130 KB at most each.
    pub fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        codec::from_slice(RANGE_FORMS, bytes, Self::read_body)
    }

    /// A window from a source that has a snapshot of `len` bytes, and works as `std::io::Read::read` does; see
    /// [`AnyFilter::restore_from`](crate::AnyFilter::restore_from).
    ///
    /// # Errors
    /// The source's own error, or that of [`RangeWindow::restore`].
    pub fn restore_from<E>(
        len: u64,
        source: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Self, RestoreError<E>> {
        codec::read(RANGE_FORMS, len, source, Self::read_body)
    }

    /// Reads what [`RangeWindow::write`] has put into another envelope.
    ///
    /// # Errors
    /// As [`RangeWindow::restore`].
    pub fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        input.envelope(RANGE_FORMS, Self::read_body)
    }

    fn read_body(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let spec = RangeSpec::read(input)?;
        let version = input.version();
        let form = if version == RANGE_FORMS.version { Form::Flat } else { Form::Levels };
        let plan: RangePlan = spec.plan_in_form(form).map_err(impossible)?;
        if version == FILTER.version {
            let size = Size::in_form(form, &spec, Promise::AsPlanned).map_err(impossible)?;
            let table = RangeTable::read(spec, size, input)?;
            return Ok(Self::with_tables(plan, table, Vec::new()));
        }
        let newest = match spec.terms.window {
            Window::Count(_) if version == RANGE_FORMS.version => input.count()?,
            Window::Time { .. } | Window::Unbounded { .. }
                if version == RANGE_TABLES.version || version == RANGE_FORMS.version =>
            {
                input.u64()?
            }
            _ => {
                return Err(SnapshotError::Invalid(
                    "a range window of a version for other filters",
                ));
            }
        };
        let overload = Overload::read(input)?;
        let mut older: Vec<RangeTable> = Vec::new();
        let count = input.u32()?;
        if count > MOST_OLDER {
            return Err(SnapshotError::Invalid("more tables than a window can have"));
        }
        let mut share = 0.0;
        loop {
            let (keys, fpr) = (input.u64()?, input.f64()?);
            let (has_limit, limit) = (input.flag()?, input.u64()?);
            share += fpr;
            let first = plan.first_table();
            let is_first = older.is_empty() && count == 0;
            let table = spec.table(keys, fpr, has_limit.then_some(limit));
            let limits =
                has_limit == spec.terms.memory.is_some() && limit <= spec.terms.memory.unwrap_or(0);
            let suits = keys > 0 && fpr > 0.0 && share <= spec.terms.fpr && limits;
            if !suits || !(plan.adds_tables() || is_first && table == first) {
                return Err(SnapshotError::Invalid("a table that its window does not have"));
            }
            let is_flat = version == RANGE_FORMS.version && input.flag()?;
            let form = if is_flat { Form::Flat } else { Form::Levels };
            let size = Size::in_form(form, &table, spec.promise()).map_err(impossible)?;
            let table = RangeTable::read(table, size, input)?;
            if table.newest > newest {
                return Err(SnapshotError::Invalid("a table that is ahead of its window"));
            }
            if older.len() < count as usize {
                older.push(table);
                continue;
            }
            return Ok(Self { newest, overload, ..Self::with_tables(plan, table, older) });
        }
    }
}

fn impossible(_: PlanError) -> SnapshotError {
    SnapshotError::Invalid("a range window that no plan makes")
}

impl RangeTable {
    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.newest);
        out.flag(self.last.is_some());
        out.u64(self.last.unwrap_or(0));
        out.u64(self.horizon);
        out.u64(self.forgetting);
        self.overload.write(out);
        each_form!(&self.items, items => items.write(out));
    }

    fn read(spec: RangeSpec, size: Size, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let newest = match spec.terms.window {
            Window::Count(_) => input.count()?,
            Window::Time { .. } | Window::Unbounded { .. } => input.u64()?,
        };
        let (has_last, last) = (input.flag()?, input.u64()?);
        if last > newest || (!has_last && last > 0) {
            return Err(SnapshotError::Invalid("a last arrival that cannot be"));
        }
        let (horizon, forgetting) = (input.u64()?, input.count()?);
        if horizon > newest {
            return Err(SnapshotError::Invalid("a horizon in the future"));
        }
        let overload = Overload::read(input)?;
        // As large as the bytes that are left, not as the plan would have it.
        let blocks = usize::try_from(input.left()).unwrap_or(usize::MAX) / BLOCK + 1;
        let mut table = Self::with_places(spec, size, blocks);
        let codes = size.codes.count;
        each_form!(&mut table.items, items => items.read(newest, codes, input))?;
        table.newest = newest;
        table.last = has_last.then_some(last);
        table.horizon = horizon;
        table.forgetting = forgetting;
        table.overload = overload;
        Ok(table)
    }
}

impl Flat {
    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.since);
        if self.ages.slack() > 0 {
            self.ends.0.iter().for_each(|&end| out.u64(end));
        }
        for &start in &self.starts[1..] {
            out.u16(start);
        }
        let words = self.shape.words_of(self.len());
        for (word, &bits) in self.words[..words].iter().enumerate() {
            out.u64(bits & self.used_bits(word));
        }
    }

    /// Those bits of a word that belong to items.
    fn used_bits(&self, word: usize) -> u64 {
        let bits = self.len() * self.shape.width() as usize;
        match bits.saturating_sub(word * 64) {
            0 => 0,
            used @ 1..64 => u64::MAX >> (64 - used),
            _ => u64::MAX,
        }
    }

    fn read(
        &mut self,
        newest: u64,
        codes: u128,
        input: &mut Reader<'_>,
    ) -> Result<(), SnapshotError> {
        let invalid = |what| Err(SnapshotError::Invalid(what));
        (self.newest, self.index) = (newest, self.ages.index(newest));
        self.since = input.u64()?;
        if self.index.checked_sub(self.since).is_none_or(|grains| grains > self.ages.mask()) {
            return invalid("items of a grain that cannot be");
        }
        if self.ages.slack() > 0 {
            for end in &mut self.ends.0 {
                *end = input.u64()?;
                if *end > newest {
                    return invalid("items of the future");
                }
            }
        }
        for bucket in 0..self.shape.buckets {
            self.starts[bucket + 1] = input.u16()?;
            if self.starts[bucket + 1] < self.starts[bucket] {
                return invalid("buckets that are not in order");
            }
        }
        if self.len() > self.shape.most {
            return invalid("more items than a table has room for");
        }
        for word in 0..self.shape.words_of(self.len()) {
            self.words[word] = input.u64()?;
            if self.words[word] & !self.used_bits(word) != 0 {
                return invalid("bits behind the last item");
            }
        }
        let live = self.ages.live_since(self.index, self.since);
        if (0..self.len()).any(|at| !live.has(self.item(at) as u64)) {
            return invalid("items older than a grain that all are of");
        }
        if self.is_in_order(codes) { Ok(()) } else { invalid("items that are not in order") }
    }

    /// Do the codes of each bucket ascend, and are they those that there are?
    fn is_in_order(&self, codes: u128) -> bool {
        (0..self.shape.buckets).all(|bucket| {
            let (from, to) = self.places(bucket);
            let low = |at: usize| self.code_of(self.item(at));
            let ascends = (from + 1..to).all(|at| low(at - 1) < low(at));
            let first = (bucket as u128) << self.shape.low_bits;
            ascends && (from == to || first + low(to - 1) < codes)
        })
    }
}

impl<W: Word> Tiers<W> {
    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.buffer.len() as u64);
        for item in &self.buffer {
            out.u128(item.wide());
        }
        for level in &self.levels {
            level.write(out, &self.pool);
        }
    }

    fn read(
        &mut self,
        newest: u64,
        codes: u128,
        input: &mut Reader<'_>,
    ) -> Result<(), SnapshotError> {
        let index = self.ages.index(newest);
        self.index = index;
        let end = W::from_wide(codes << self.ages.bits);
        let bits = self.ages.bits;
        for _ in 0..input.u64()? {
            let wide = input.u128()?;
            let item = W::from_wide(wide);
            let is_behind = self.buffer.last().is_none_or(|&last| last >> bits < item >> bits);
            if item.wide() != wide || item >= end || !is_behind || self.is_crowded() {
                return Err(SnapshotError::Invalid("a buffer that cannot be"));
            }
            self.buffer.push(item);
        }
        for level in &mut self.levels {
            level.read(end, index, &mut self.pool, input)?;
        }
        for pair in self.levels.windows(2) {
            if let [above, below] = pair {
                let (there, round) = above.overtook;
                let is_behind = round == below.rounds && there <= below.cursor
                    || round + 1 == below.rounds && there >= below.cursor
                    // Of a level that has never met the one below.
                    || round == 0 && there == W::default() && below.rounds <= 1;
                if !is_behind {
                    return Err(SnapshotError::Invalid("a level that was never overtaken"));
                }
            }
        }
        Ok(())
    }
}

impl<W: Word> Level<W> {
    fn write(&self, out: &mut Writer<'_>, pool: &super::pool::Pool) {
        out.u128(self.cursor.wide());
        out.u128(self.overtook.0.wide());
        out.u64(self.overtook.1);
        out.u64(self.rounds);
        out.u64(self.began[0]);
        out.u64(self.began[1]);
        out.u64(self.wait.cast_unsigned());
        out.u64(self.pause.cast_unsigned());
        out.u8(u8::from(self.open.is_some()));
        out.u64(self.old as u64);
        out.u64(self.ring.len() as u64);
        for entry in &self.ring {
            out.u32(entry.first);
            out.bytes(&pool.block(entry.block).0);
        }
    }

    fn read(
        &mut self,
        end: W,
        index: u64,
        pool: &mut super::pool::Pool,
        input: &mut Reader<'_>,
    ) -> Result<(), SnapshotError> {
        let invalid = |what| Err(SnapshotError::Invalid(what));
        let (cursor, overtook) = (input.u128()?, input.u128()?);
        self.cursor = W::from_wide(cursor);
        self.overtook = (W::from_wide(overtook), input.count()?);
        self.rounds = input.count()?;
        let is_code = |wide: u128, word: W| {
            word.wide() == wide && word < end && word.low() & W::mask_of(self.shape.stamp_bits) == 0
        };
        if !is_code(cursor, self.cursor) || !is_code(overtook, self.overtook.0) {
            return invalid("a sweep that is not at a code");
        }
        self.began = [input.u64()?, input.u64()?];
        if self.began[0] > self.began[1] || self.began[1] > index {
            return invalid("a round that has not begun yet");
        }
        self.wait = input.u64()?.cast_signed();
        self.pause = input.u64()?.cast_signed();
        if self.pause < 1 {
            return invalid("a sweep without a pause");
        }
        let is_open = input.flag()?;
        let (old, all) = (input.u64()?, input.u64()?);
        if old > all || is_open && old == all {
            return invalid("more old blocks than blocks");
        }
        let mut before = None;
        for at in 0..all {
            if at == old {
                before = None;
            }
            let last = self.read_block(end, before, pool, input)?;
            // The first old one has been read to the cursor and not to its end.
            if at == 0 && old > 0 && last < self.cursor || at >= old && last >= self.cursor {
                return invalid("a block on the wrong side of the sweep");
            }
            before = Some(last);
            if is_open && at + 1 == all {
                let first = self.ring.back().map_or(0, |entry| u64::from(entry.first));
                self.open = Some(self.bucket_of(last) - first);
            }
        }
        self.old = old as usize;
        self.count_and_index(pool);
        Ok(())
    }

    /// Reads a block whose items come after all of the one before. Gives its last item.
    fn read_block(
        &mut self,
        end: W,
        before: Option<W>,
        pool: &mut super::pool::Pool,
        input: &mut Reader<'_>,
    ) -> Result<W, SnapshotError> {
        let first = input.u32()?;
        let mut block = Block::EMPTY;
        input.fill(&mut block.0)?;
        let layout = self.shape.layout;
        let (len, last) = block
            .check::<W>(layout, self.shape.stamp_bits)
            .ok_or(SnapshotError::Invalid("a block that is not in order"))?;
        let last = u64::from(first) + last;
        let field = block.field(len - 1, layout.bits);
        if last > self.bucket_of(end) || self.item(last, field) >= end {
            return Err(SnapshotError::Invalid("a block with codes that there are not"));
        }
        let number = pool.take().ok_or(SnapshotError::Invalid("more blocks than memory"))?;
        pool.block_mut(number).clone_from(&block);
        self.ring.push_back(Entry { first, block: number });
        let first = self.first_item(self.ring.len() - 1, pool);
        if before.is_some_and(|before| self.code_of(first) <= self.code_of(before)) {
            return Err(SnapshotError::Invalid("blocks that are not in order"));
        }
        Ok(self.item(last, field))
    }

    /// What follows from the blocks: how many items there are, and where prefixes begin.
    fn count_and_index(&mut self, pool: &super::pool::Pool) {
        let mut indexed = self.index_blocks(0..self.old);
        self.index[indexed..].fill(self.old.saturating_sub(1) as u32);
        indexed = self.index_blocks(self.old..self.ring.len());
        self.indexed = indexed;
        let mut items = 0;
        let _ = self.walk(W::default(), W::END, pool, |_| {
            items += 1;
            ControlFlow::Continue(())
        });
        self.items = items;
    }
}

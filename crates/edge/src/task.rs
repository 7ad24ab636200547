//! What requesters ask for.

use crate::Millis;
use crate::cell::{KmCell, SmallCell, Square};
use crate::element::Property;
use crate::ids::TaskId;
use alloc::vec::Vec;
use core::fmt;

/// The most cells of an area, so that the largest number of tasks fits into one message.
pub const MAX_AREA: usize = 16;

/// A task: a number of readings of a property, in an area, for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// What is to be measured.
    pub property: Property,
    /// Where.
    pub area: Area,
    /// From when on.
    pub from: Millis,
    /// Until when; this moment is no longer in it.
    pub until: Millis,
    /// Readings wanted in each cell of 100 m in each validity period (the paper's m_mec); at least 1.
    pub wanted: u16,
}

/// Where readings are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Area {
    /// On all the Earth.
    Everywhere,
    /// In these cells: 1 to [`MAX_AREA`].
    Cells(Vec<AreaCell>),
}

/// A part of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaCell {
    /// 10 km.
    Square(Square),
    /// 1 km.
    Km(KmCell),
    /// 100 m.
    Small(SmallCell),
}

/// Why a task cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum TaskError {
    /// Its time is over, or ends before it begins.
    Expired = 1,
    /// Its area has no cells, or too many.
    Area = 2,
    /// It wants no readings.
    Nothing = 3,
    /// There are as many tasks as can be kept.
    TooMany = 4,
    /// Another requester has a task of this name.
    Taken = 5,
    /// Its requester has as many tasks as one may have.
    TooManyOfOne = 6,
}

impl TaskError {
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Expired,
            Self::Area,
            Self::Nothing,
            Self::TooMany,
            Self::Taken,
            Self::TooManyOfOne,
        ];
        all.into_iter().find(|&error| error as u8 == number)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the task's time is over",
            Self::Area => "the task's area must have 1 to 16 cells",
            Self::Nothing => "the task wants no readings",
            Self::TooMany => "there is no room for another task",
            Self::Taken => "another requester's task has this name",
            Self::TooManyOfOne => "the requester has as many tasks as one may have",
        })
    }
}

impl core::error::Error for TaskError {}

impl Task {
    /// Can it be done, as of now?
    ///
    /// # Errors
    /// [`TaskError`] says why not.
    pub fn check(&self, now: Millis) -> Result<(), TaskError> {
        if self.until <= now || self.until <= self.from {
            return Err(TaskError::Expired);
        }
        if matches!(&self.area, Area::Cells(cells) if cells.is_empty() || cells.len() > MAX_AREA) {
            return Err(TaskError::Area);
        }
        if self.wanted == 0 { Err(TaskError::Nothing) } else { Ok(()) }
    }

    /// Is it to be worked on at this moment?
    pub const fn is_active(&self, now: Millis) -> bool {
        self.from <= now && now < self.until
    }

    /// Does a worker with these properties have anything to do for it in that cell of 1 km? The paper's μ,
    /// but for the time: what begins later is assigned now.
    pub fn suits(&self, properties: &[Property], cell: KmCell, now: Millis) -> bool {
        now < self.until && properties.contains(&self.property) && self.area.touches_km(cell)
    }

    /// Does it want such a reading at this moment?
    pub fn wants(&self, property: Property, cell: SmallCell, now: Millis) -> bool {
        self.property == property && self.is_active(now) && self.area.contains(cell)
    }
}

impl Area {
    fn any(&self, fits: impl Fn(AreaCell) -> bool) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Cells(cells) => cells.iter().any(|&cell| fits(cell)),
        }
    }

    /// Is all of a cell of 100 m in it?
    pub fn contains(&self, small: SmallCell) -> bool {
        self.any(|cell| match cell {
            AreaCell::Square(square) => square == small.square(),
            AreaCell::Km(km) => km == small.km(),
            AreaCell::Small(cell) => cell == small,
        })
    }

    /// Is some of a cell of 1 km in it?
    pub fn touches_km(&self, km: KmCell) -> bool {
        self.any(|cell| match cell {
            AreaCell::Square(square) => square == km.square(),
            AreaCell::Km(cell) => cell == km,
            AreaCell::Small(small) => small.km() == km,
        })
    }

    /// Is some of a square of 10 km in it?
    pub fn touches(&self, square: Square) -> bool {
        self.any(|cell| match cell {
            AreaCell::Square(cell) => cell == square,
            AreaCell::Km(km) => km.square() == square,
            AreaCell::Small(small) => small.square() == square,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching() {
        let small: SmallCell = "33TWL759737".parse().unwrap();
        let elsewhere: SmallCell = "33TWL749737".parse().unwrap();
        let [noise, co] = ["noise", "co"].map(|name| Property::new(name).unwrap());
        let task =
            |area| Task { id: TaskId(1), property: noise, area, from: 10, until: 20, wanted: 1 };
        let of = |cell| Area::Cells(alloc::vec![cell]);
        for area in [
            Area::Everywhere,
            of(AreaCell::Square(small.square())),
            of(AreaCell::Km(small.km())),
            of(AreaCell::Small(small)),
        ] {
            let everywhere = area == Area::Everywhere;
            let whole_square =
                matches!(&area, Area::Cells(cells) if matches!(cells[0], AreaCell::Square(_)));
            let task = task(area);
            assert!(task.suits(&[co, noise], small.km(), 5) && !task.suits(&[co], small.km(), 5));
            assert!(!task.suits(&[noise], small.km(), 20));
            assert!(task.wants(noise, small, 10) && task.wants(noise, small, 19));
            assert!(!task.wants(noise, small, 9) && !task.wants(noise, small, 20));
            assert!(!task.wants(co, small, 10) && task.area.touches(small.square()));
            assert_eq!(task.wants(noise, elsewhere, 10), everywhere || whole_square);
            assert_eq!(task.suits(&[noise], elsewhere.km(), 5), everywhere || whole_square);
        }
        assert_eq!(task(Area::Cells(Vec::new())).check(0), Err(TaskError::Area));
        assert_eq!(task(Area::Everywhere).check(20), Err(TaskError::Expired));
        assert_eq!(Task { wanted: 0, ..task(Area::Everywhere) }.check(0), Err(TaskError::Nothing));
    }
}

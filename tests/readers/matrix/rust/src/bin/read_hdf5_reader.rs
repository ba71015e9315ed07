//! hdf5-reader, a reader in pure Rust, which netcdf-reader is built on.

use hdf5_reader::error::Result;
use hdf5_reader::group::Group;
use hdf5_reader::{Attribute, Dataset, Datatype, Hdf5File};
use reader_matrix::{read_files, say, wanted, Line};

/// Calls `$read::<T>` with the type of the file, and gives f64.
macro_rules! as_f64 {
    ($dtype:expr, $read:ident) => {
        match $dtype {
            Datatype::FixedPoint { size: 1, signed: true, .. } => $read!(i8),
            Datatype::FixedPoint { size: 1, signed: false, .. } => $read!(u8),
            Datatype::FixedPoint { size: 2, signed: true, .. } => $read!(i16),
            Datatype::FixedPoint { size: 2, signed: false, .. } => $read!(u16),
            Datatype::FixedPoint { size: 4, signed: true, .. } => $read!(i32),
            Datatype::FixedPoint { size: 4, signed: false, .. } => $read!(u32),
            Datatype::FixedPoint { size: 8, signed: true, .. } => $read!(i64),
            Datatype::FixedPoint { size: 8, signed: false, .. } => $read!(u64),
            Datatype::FloatingPoint { size: 4, .. } => $read!(f32),
            Datatype::FloatingPoint { size: 8, .. } => $read!(f64),
            // Let the library say why.
            _ => $read!(f64),
        }
    };
}

fn is_text(dtype: &Datatype) -> bool {
    matches!(dtype, Datatype::String { .. } | Datatype::VarLen { .. })
}

fn attributes(line: &mut Line, all: Vec<Attribute>) -> Result<()> {
    for each in all.iter().filter(|each| wanted(&each.name)) {
        if is_text(&each.datatype) {
            line.attribute_texts(&each.name, &each.read_strings()?);
        } else {
            macro_rules! read {
                ($type:ty) => {
                    each.read_1d::<$type>().map(|v| v.iter().map(|x| *x as f64).collect::<Vec<_>>())
                };
            }
            line.attribute_numbers(&each.name, &as_f64!(&each.datatype, read)?);
        }
    }
    Ok(())
}

fn dataset(line: &mut Line, item: &Dataset) -> Result<()> {
    line.shape(item.shape());
    if is_text(item.dtype()) {
        line.texts(&item.read_strings()?);
    } else {
        macro_rules! read {
            ($type:ty) => {
                item.read_array::<$type>().map(|v| v.iter().map(|x| *x as f64).collect::<Vec<_>>())
            };
        }
        line.numbers(&as_f64!(item.dtype(), read)?);
    }
    attributes(line, item.attributes())
}

fn inside(path: &str, group: &Group, prefix: &str) -> Result<()> {
    let (groups, datasets) = group.member_names()?;
    for name in datasets {
        say(path, &format!("{prefix}{name}"), |line| dataset(line, &group.dataset(&name)?));
    }
    for name in groups {
        inside(path, &group.group(&name)?, &format!("{prefix}{name}/"))?;
    }
    Ok(())
}

fn walk(path: &str) -> Result<()> {
    let file = Hdf5File::open(path)?;
    let root = file.root_group()?;
    say(path, "/", |line| attributes(line, root.attributes()?));
    inside(path, &root, "")
}

fn main() {
    read_files("0.12.1", walk);
}

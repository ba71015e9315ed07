//! hdf5-pure, a reader and writer in pure Rust.

use std::collections::HashMap;

use hdf5_pure::{AttrValue, DType, Dataset, Error, File, Group, VlenStringReadOptions};
use reader_matrix::{read_files, say, wanted, Line};

fn attributes(line: &mut Line, all: HashMap<String, AttrValue>) {
    for (name, value) in all.iter().filter(|(name, _)| wanted(name)) {
        match value {
            AttrValue::F64(v) => line.attribute_numbers(name, &[*v]),
            AttrValue::F64Array(v) => line.attribute_numbers(name, v),
            AttrValue::String(v) | AttrValue::AsciiString(v) | AttrValue::VarLenString(v)
            | AttrValue::StringSized { value: v, .. }
            | AttrValue::AsciiStringSized { value: v, .. } => {
                line.attribute_texts(name, std::slice::from_ref(v))
            }
            AttrValue::StringArray(v) | AttrValue::VarLenStringArray(v)
            | AttrValue::AsciiStringArray(v) => line.attribute_texts(name, v),
            other => line.attribute_texts(name, &[format!("{other:?}")]),
        }
    }
}

fn dataset(line: &mut Line, item: &Dataset) -> Result<(), Error> {
    line.shape(&item.shape()?);
    match item.dtype()? {
        DType::String => line.texts(&item.read_string()?),
        DType::VariableLengthString => {
            line.texts(&item.read_vlen_strings(VlenStringReadOptions::default())?)
        }
        _ => line.numbers(&item.read_f64()?),
    }
    attributes(line, item.attrs()?);
    Ok(())
}

fn inside(path: &str, group: &Group, prefix: &str) -> Result<(), Error> {
    for name in group.datasets()? {
        say(path, &format!("{prefix}{name}"), |line| dataset(line, &group.dataset(&name)?));
    }
    for name in group.groups()? {
        inside(path, &group.group(&name)?, &format!("{prefix}{name}/"))?;
    }
    Ok(())
}

fn walk(path: &str) -> Result<(), Error> {
    let file = File::open(path)?;
    let root = file.root();
    say(path, "/", |line| {
        attributes(line, root.attrs()?);
        Ok::<(), Error>(())
    });
    inside(path, &root, "")
}

fn main() {
    read_files("0.47.0", walk);
}

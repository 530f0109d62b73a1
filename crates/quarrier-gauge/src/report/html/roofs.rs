//! The roofline of a report: which of memory and arithmetic limits a kernel.

use super::plot::{self, Roof, Roofs, Slope};
use crate::report::{Ceilings, Report, put, quantity, text, words};

/// Writes the section, where both memory and arithmetic were measured.
pub(super) fn section(out: &mut String, report: &Report) {
    let ceilings = Ceilings::of(report);
    let levels = ceilings.levels();
    let slopes = levels.iter().enumerate().map(|(place, level)| Slope {
        name: level.name.clone(),
        bytes_per_second: level.reading.value,
        colour: plot::theme::series(place),
    });
    let roofs = ceilings.kinds().into_iter().enumerate().filter_map(|(place, kind)| {
        let reading = ceilings.arithmetic(kind)?;
        let with = reading.parameters.text("isa").unwrap_or_default();
        let name = format!("{kind} {with}").trim_end().to_string();
        let colour = plot::theme::series(levels.len() + place);
        Some((Roof { name, per_second: reading.value, colour }, reading))
    });
    let (roofs, peaks): (Vec<_>, Vec<_>) = roofs.unzip();
    let Some(svg) = plot::roofline(&Roofs { slopes: slopes.collect(), roofs }) else { return };
    put!(
        out,
        "<section class=\"card\" id=\"roofline\"><h2>Roofline</h2>\n\
         <p class=\"under\">What a kernel can reach at most, by how many operations it does on each \
         byte: left of a knee memory limits it, right of it arithmetic.</p>\n<div class=\"legend\">"
    );
    for (place, level) in levels.iter().enumerate() {
        put!(
            out,
            "<span><i class=\"key s{place}\"></i>{} {}, {}</span>",
            level.name,
            quantity::value(level.reading.value, level.reading.unit),
            text::escape(&words::parameters(level.reading))
        );
    }
    for (place, peak) in peaks.iter().enumerate() {
        put!(
            out,
            "<span><i class=\"key s{}\"></i>{} {}</span>",
            levels.len() + place,
            text::escape(&words::parameters(peak)),
            quantity::value(peak.value, peak.unit)
        );
    }
    put!(
        out,
        "</div>\n<div class=\"scroll\">{svg}</div>\n\
         <p class=\"under across\">operations on each byte</p></section>\n"
    );
}

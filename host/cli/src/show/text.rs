//! Tables of text that fit a given number of columns.

use crate::output::Paint;

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// To the right (numbers), else to the left.
    pub right: bool,
    /// May be cut to this many characters when the table is too wide; None: never.
    pub least: Option<usize>,
}

impl Column {
    /// Numbers.
    pub const fn right(title: &'static str) -> Self {
        Self { title, right: true, least: None }
    }

    /// Text that may be cut.
    pub const fn left(title: &'static str, least: usize) -> Self {
        Self { title, right: false, least: Some(least) }
    }
}

/// Lays out rows; `width` None: as wide as they are.
pub fn table(columns: &[Column], rows: &[Vec<String>], width: Option<usize>, paint: Paint) -> String {
    let length = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(n, column)| rows.iter().map(|row| length(&row[n])).chain([length(column.title)]).max().unwrap_or(0))
        .collect();
    let mut gap = 2;
    if let Some(width) = width {
        let total = |widths: &[usize], gap| widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1);
        if total(&widths, gap) > width {
            gap = 1;
        }
        for (n, column) in columns.iter().enumerate() {
            let excess = total(&widths, gap).saturating_sub(width);
            if let (Some(least), true) = (column.least, excess > 0) {
                widths[n] = widths[n].saturating_sub(excess).max(least.min(widths[n]));
            }
        }
    }
    let mut text = String::new();
    let titles: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
    text.push_str(&paint.bold(&line(columns, &titles, &widths, gap)));
    text.push('\n');
    for row in rows {
        text.push_str(&line(columns, row, &widths, gap));
        text.push('\n');
    }
    text
}

fn line(columns: &[Column], cells: &[String], widths: &[usize], gap: usize) -> String {
    let mut text = String::new();
    for (n, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if n > 0 {
            text.extend(std::iter::repeat_n(' ', gap));
        }
        let cell = cut(cell, *width);
        let fill = width - cell.chars().count();
        if columns[n].right {
            text.extend(std::iter::repeat_n(' ', fill));
        }
        text.push_str(&cell);
        if !columns[n].right {
            text.extend(std::iter::repeat_n(' ', fill));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Breaks text at spaces; never within a word.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_wide_is_cut_where_it_may_be() {
        let columns = [Column::left("name", 6), Column::right("n")];
        let rows = [vec!["a rather long name".to_owned(), "12345".to_owned()], vec!["b".into(), "1".into()]];
        let wide = table(&columns, &rows, None, Paint::PLAIN);
        assert_eq!(wide, "name                    n\na rather long name  12345\nb                       1\n");
        let narrow = table(&columns, &rows, Some(14), Paint::PLAIN);
        assert_eq!(narrow, "name         n\na rathe… 12345\nb            1\n");
    }
}

//! `gputrail help`, `gputrail completions` and `gputrail man`: the help of the verbs, and the pages of the documentation, which
//! the command carries.

use crate::carried::Carried;
use crate::cli::{Cli, Shell};
use crate::failure::Failure;
use crate::stdout;
use anyhow::{Context, anyhow};
use clap::{Command, CommandFactory};
use std::fs;
use std::path::Path;

/// The name of the command in its help.
const NAME: &str = "gputrail";

/// The command line, whose verbs call themselves by both words.
fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// `gputrail help`: the help of a verb, the page of a topic, or both, if the verb has a page.
pub fn show(carried: Carried, topic: Option<&str>) -> Result<u8, Failure> {
    let mut command = command();
    let Some(topic) = topic else {
        let topics: Vec<String> = carried.pages.iter().map(line).collect();
        let help = command.render_long_help();
        stdout::print(&format!(
            "{help}\nPages, for `gputrail help TOPIC`:\n{}",
            topics.concat()
        ))?;
        return Ok(0);
    };
    let verb = command
        .find_subcommand_mut(topic)
        .map(|verb| verb.render_long_help().to_string());
    let page = carried.pages.iter().find(|(name, _)| *name == topic);
    let texts: Vec<&str> = verb
        .as_deref()
        .into_iter()
        .chain(page.map(|(_, text)| *text))
        .collect();
    if texts.is_empty() {
        let pages: Vec<&str> = carried.pages.iter().map(|(name, _)| *name).collect();
        return Err(anyhow!(
            "there is no verb and no page {topic:?}; `gputrail help` lists the verbs, and the pages are: {}",
            pages.join(", ")
        )
        .into());
    }
    stdout::print(&texts.join("\n"))?;
    Ok(0)
}

/// A page in the list of pages: its topic and title.
fn line((name, text): &(&str, &str)) -> String {
    let title = text
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches('#')
        .trim();
    format!("  {name:<12}{title}\n")
}

/// `gputrail completions`: prints a shell's script.
pub fn completions(shell: Shell) -> Result<u8, Failure> {
    use clap_complete::{Shell as Known, generate};
    let known = match shell {
        Shell::Bash => Known::Bash,
        Shell::Zsh => Known::Zsh,
        Shell::Fish => Known::Fish,
    };
    let mut script = Vec::new();
    generate(known, &mut Cli::command(), NAME, &mut script);
    stdout::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

/// `gputrail man`: writes a page for the command, and one for each verb.
pub fn man(folder: &Path) -> Result<u8, Failure> {
    let cannot = || format!("cannot write pages of the manual to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let command = command();
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = shown.map(|verb| (format!("{NAME}-{}", verb.get_name()), verb.clone()));
    for (name, page) in [(NAME.to_owned(), command.clone())]
        .into_iter()
        .chain(verbs)
    {
        let mut text = Vec::new();
        clap_mangen::Man::new(page)
            .title(name.to_uppercase())
            .render(&mut text)
            .with_context(cannot)?;
        fs::write(folder.join(format!("{name}.1")), text).with_context(cannot)?;
    }
    Ok(0)
}

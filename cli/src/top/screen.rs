//! The terminal: reads keys and draws rows. Another thread reads the log, so that keys are handled at once.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use lucce_control::{ControlCommand, send_command};
use lucce_decoder::{GroupBy, GroupKey, OpenError};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row as TableRow, Table, TableState};
use ratatui::{DefaultTerminal, Frame};

use super::super::target::RunTarget;
use super::super::{CommandError, CommandStatus};
use super::overview;
use super::rows::{self, TopRow, TopView};
use super::sampler::{LogSampler, SampleWindow};

/// Time between two checks for keys.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time for which a message is shown.
const MESSAGE_TIME: Duration = Duration::from_secs(4);
/// Number of rows of a page key.
const PAGE_ROWS: usize = 10;

const HELP: &str =
    "←→ list  e kind  s sort  ↑↓ row  Enter trace  f facts  space pause  d dump  q quit";

struct TopScreen<'t> {
    target: &'t RunTarget,
    view: TopView,
    window: Option<SampleWindow>,
    /// The drawn text, rebuilt when the window or the selection changes, not at each drawing.
    head: Vec<String>,
    rows: Vec<TopRow>,
    selected: TableState,
    /// The shown trace; empty: none.
    trace: Vec<String>,
    /// The first visible line of the trace.
    scrolled: usize,
    /// Number of visible lines of the trace.
    visible_lines: usize,
    paused: bool,
    /// The last message, and when it appeared.
    message: String,
    message_since: Instant,
}

pub fn run_screen(
    target: &RunTarget,
    sampler: LogSampler,
    view: TopView,
) -> Result<CommandStatus, CommandError> {
    let windows = spawn_sampler(sampler);
    let mut screen = TopScreen {
        target,
        view,
        window: None,
        head: vec![target.log.display().to_string()],
        rows: Vec::new(),
        selected: TableState::default(),
        trace: Vec::new(),
        scrolled: 0,
        visible_lines: 0,
        paused: false,
        message: "reading …".into(),
        message_since: Instant::now(),
    };
    let mut terminal = ratatui::try_init()?;
    let ended = screen.run_event_loop(&mut terminal, &windows);
    ratatui::restore();
    ended?;
    Ok(CommandStatus::Fine)
}

type SampleResult = Result<SampleWindow, OpenError>;

/// Reads windows until the receiver is dropped or the log cannot be read.
fn spawn_sampler(mut sampler: LogSampler) -> Receiver<SampleResult> {
    let (sender, receiver): (Sender<SampleResult>, _) = mpsc::channel();
    thread::spawn(move || {
        loop {
            thread::sleep(sampler.poll_interval());
            let look = sampler.read_window();
            let is_over = look.is_err();
            if sender.send(look).is_err() || is_over {
                return;
            }
        }
    });
    receiver
}

impl TopScreen<'_> {
    fn run_event_loop(
        &mut self,
        terminal: &mut DefaultTerminal,
        looks: &Receiver<SampleResult>,
    ) -> std::io::Result<()> {
        loop {
            while let Ok(look) = looks.try_recv() {
                self.receive_sample(look);
            }
            terminal.draw(|frame| self.draw_frame(frame))?;
            if event::poll(KEY_POLL_INTERVAL)?
                && let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && !self.handle_key(key)
            {
                return Ok(());
            }
        }
    }

    fn receive_sample(&mut self, look: SampleResult) {
        match look {
            Ok(_) if self.paused => {}
            Ok(window) => {
                self.trace.clear();
                self.window = Some(window);
                if self.target.has_ended() {
                    self.message = "the JVM has ended".into();
                } else if self.message_since.elapsed() > MESSAGE_TIME {
                    self.message.clear();
                }
                self.update_rows();
            }
            Err(error) => self.message = format!("the log cannot be read any more: {error}"),
        }
    }

    fn update_rows(&mut self) {
        if let Some(window) = &self.window {
            self.head = rows::format_head(window, &self.view);
            self.head
                .append(&mut rows::format_summaries(window, &self.view));
            self.rows = overview::list_top_rows(window, &self.view);
        }
        let last = self.rows.len().checked_sub(1);
        let selected = self.selected.selected().unwrap_or(0);
        self.selected.select(last.map(|last| selected.min(last)));
    }

    /// Handles a key; `false`: quit.
    fn handle_key(&mut self, key: KeyEvent) -> bool {
        let is_interrupt =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            _ if is_interrupt => return false,
            KeyCode::Char('q') => return false,
            KeyCode::Esc if self.trace.is_empty() => return false,
            KeyCode::Esc => self.trace.clear(),
            KeyCode::Right | KeyCode::Tab => self.switch_list(1),
            KeyCode::Left | KeyCode::BackTab => self.switch_list(GroupBy::ALL.len() - 1),
            KeyCode::Char('e') => {
                if let Some(window) = &self.window {
                    self.view.next_kind(window);
                }
                self.trace.clear();
                self.update_rows();
            }
            KeyCode::Char('s') => {
                self.view.by_count = !self.view.by_count;
                self.update_rows();
            }
            KeyCode::Down => self.move_selection(1),
            KeyCode::Up => self.move_selection(-1),
            KeyCode::PageDown if !self.trace.is_empty() => self.scrolled += self.visible_lines,
            KeyCode::PageUp if !self.trace.is_empty() => {
                self.scrolled = self.scrolled.saturating_sub(self.visible_lines);
            }
            KeyCode::PageDown => self.move_selection(PAGE_ROWS as isize),
            KeyCode::PageUp => self.move_selection(-(PAGE_ROWS as isize)),
            KeyCode::Enter => self.toggle_trace(),
            KeyCode::Char('f') => self.toggle_facts(),
            KeyCode::Char(' ') => {
                self.paused = !self.paused;
                self.message = String::new();
            }
            KeyCode::Char('d') => self.message = self.dump_log(),
            _ => {}
        }
        self.message_since = Instant::now();
        true
    }

    fn switch_list(&mut self, steps: usize) {
        self.view.advance_list(steps);
        self.trace.clear();
        self.update_rows();
    }

    /// Moves the selection by `rows`; an open trace changes to that row's.
    fn move_selection(&mut self, rows: isize) {
        let last = self.rows.len().saturating_sub(1);
        let selected = self.selected.selected().unwrap_or(0);
        let next = selected.saturating_add_signed(rows).min(last);
        self.selected
            .select((!self.rows.is_empty()).then_some(next));
        if !self.trace.is_empty() {
            self.trace = self.selected_trace();
            self.scrolled = 0;
        }
    }

    fn selected_key(&self) -> Option<GroupKey> {
        let row = self.rows.get(self.selected.selected()?)?;
        Some(row.key)
    }

    fn selected_trace(&self) -> Vec<String> {
        match (&self.window, self.selected_key()) {
            (Some(window), Some(key)) => rows::format_trace(window, key),
            _ => Vec::new(),
        }
    }

    /// Opens or closes a trace; the screen does not change while it is open.
    fn toggle_trace(&mut self) {
        let is_context = matches!(self.selected_key(), Some(GroupKey::Context(..)));
        self.trace = match self.trace.is_empty() {
            true => self.selected_trace(),
            false => Vec::new(),
        };
        self.scrolled = 0;
        self.paused = !self.trace.is_empty();
        self.message = match is_context {
            true => String::new(),
            false => "contexts have traces: ← and → change the list".into(),
        };
    }

    /// Opens or closes the table of the shown kind, in place of a trace.
    fn toggle_facts(&mut self) {
        let facts = match (&self.window, self.trace.is_empty()) {
            (Some(window), true) => rows::format_facts(window, &self.view, usize::MAX),
            _ => Vec::new(),
        };
        self.message = match facts.is_empty() && self.trace.is_empty() {
            true => {
                "this kind has no table; alloc with survive, lock, thread, open, class and time have one: e changes the kind"
                    .into()
            }
            false => String::new(),
        };
        self.trace = facts;
        self.scrolled = 0;
        self.paused = !self.trace.is_empty();
    }

    /// Copies the log like `lucce ctl PID dump`; returns the message.
    fn dump_log(&self) -> String {
        let Some(pid) = self.target.pid else {
            return "this is a log already".into();
        };
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let file = format!(
            "top-{pid}-{}.lucce",
            since.map_or(0, |since| since.as_secs())
        );
        let Ok(path) = std::path::absolute(&file) else {
            return "the working directory is gone".into();
        };
        match send_command(pid, &ControlCommand::Dump(Some(path.display().to_string()))) {
            Ok(_) => format!("wrote {file}"),
            Err(error) => error.to_string(),
        }
    }

    fn draw_frame(&mut self, frame: &mut Frame<'_>) {
        let trace_height = match self.trace.len() {
            0 => Constraint::Length(0),
            lines => Constraint::Length(
                (lines as u16)
                    .saturating_add(2)
                    .min(frame.area().height / 2),
            ),
        };
        let [head, lists, table, below, foot] = Layout::vertical([
            Constraint::Length(self.head.len().clamp(2, 4) as u16),
            Constraint::Length(1),
            Constraint::Min(3),
            trace_height,
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(self.head.join("\n")), head);
        frame.render_widget(self.list_tabs(), lists);
        frame.render_stateful_widget(self.rows_table(), table, &mut self.selected);
        if !self.trace.is_empty() {
            frame.render_widget(self.trace_widget(below.height.saturating_sub(2)), below);
        }
        frame.render_widget(Paragraph::new(self.format_foot()), foot);
    }

    /// The part of the trace that fits `height` lines; the title says if that is not all.
    fn trace_widget(&mut self, height: u16) -> Paragraph<'static> {
        let (all, height) = (self.trace.len(), usize::from(height));
        self.scrolled = self.scrolled.min(all.saturating_sub(height));
        let shown: Vec<String> = self
            .trace
            .iter()
            .skip(self.scrolled)
            .take(height)
            .cloned()
            .collect();
        self.visible_lines = shown.len();
        let title = match shown.len() {
            0 => "trace: the terminal has no room for it".to_owned(),
            shown if shown == all => "trace".to_owned(),
            _ => format!(
                "trace, lines {} to {} of {all}: PgUp PgDn",
                self.scrolled + 1,
                self.scrolled + shown.len()
            ),
        };
        Paragraph::new(shown.join("\n")).block(Block::bordered().title(title))
    }

    fn list_tabs(&self) -> Line<'static> {
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        let spans = GroupBy::ALL.iter().flat_map(|list| {
            let style = match *list == self.view.list {
                true => reversed,
                false => Style::new(),
            };
            [
                Span::styled(format!(" {} ", rows::list_title(*list)), style),
                Span::raw(" "),
            ]
        });
        Line::from_iter(spans)
    }

    fn rows_table(&self) -> Table<'static> {
        let survival_width = match self.rows.iter().all(|row| row.survival.is_empty()) {
            true => 0,
            false => rows::SURVIVAL_WIDTH,
        };
        let rows = self.rows.iter().map(|row| {
            TableRow::new([
                format!("{:>6.1}%", row.share),
                format!("{:>14}", row.value),
                format!("{:>12}", row.count),
                format!("{:>survival_width$}", row.survival),
                row.name.clone(),
            ])
        });
        let widths = [
            Constraint::Length(7),
            Constraint::Length(14),
            Constraint::Length(12),
            Constraint::Length(survival_width as u16),
            Constraint::Fill(1),
        ];
        let by_count = self
            .window
            .as_ref()
            .map(|window| self.view.sorts_by_count(window));
        let head = |name: &str, is_sorted, wide| {
            let mark = if is_sorted { "▾ " } else { "" };
            format!("{:>wide$}", format!("{mark}{name}"))
        };
        let heading = TableRow::new([
            "  share".to_owned(),
            head("value", by_count == Some(false), 14),
            head("events", by_count == Some(true), 12),
            format!(
                "{:>survival_width$}",
                if survival_width > 0 { "lives" } else { "" }
            ),
            rows::list_title(self.view.list).to_owned(),
        ])
        .style(Style::new().add_modifier(Modifier::BOLD));
        Table::new(rows, widths)
            .header(heading)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
    }

    fn format_foot(&self) -> String {
        match (self.message.as_str(), self.paused) {
            ("", false) => HELP.to_owned(),
            ("", true) => format!("paused  {HELP}"),
            (message, _) => format!("{message}  (q quit)"),
        }
    }
}

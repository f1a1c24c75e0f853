//! Parser events → [`Node`] trees, one per document, with every bound on size kept while building.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, StrInput};

use super::{Entry, MAX_ALIAS_BYTES, MAX_DEPTH, MAX_FAULTS, MAX_NODES, Node, NodeKind, Style, Text, decode, traps};
use crate::diagnostic::{Diagnostic, SourceFile, Span};

/// The documents of a file that could be read, and every fault. A fault inside one document does not hide the others:
/// a document with a syntax error is not among the results, one with a duplicate key is (with the first of the two).
pub fn parse(file: &Arc<SourceFile>) -> (Vec<Node>, Vec<Diagnostic>) {
    if let Some(fault) = decode::check(file) {
        return (Vec::new(), vec![fault]);
    }
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    options.emit_unresolved_aliases = true;
    let mut parser = Parser::new_from_str_with_options(&file.text, options);
    let mut builder = Builder {
        file,
        documents: Vec::new(),
        faults: Vec::new(),
        stack: Vec::new(),
        root: None,
        anchors: HashMap::new(),
        open_anchors: HashSet::new(),
        nodes: 0,
        anchored: 0,
        alias_bytes: 0,
    };
    builder.run(&mut parser);
    builder.faults.truncate(MAX_FAULTS);
    (builder.documents, builder.faults)
}

struct Builder<'a> {
    file: &'a Arc<SourceFile>,
    documents: Vec<Node>,
    faults: Vec<Diagnostic>,
    stack: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Node>,
    open_anchors: HashSet<usize>,
    nodes: usize,
    anchored: usize,
    alias_bytes: usize,
}

/// A collection whose end has not been seen.
struct Open {
    span: Span,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, seen: HashMap<String, Span>, key: Option<Key> },
}

enum Key {
    /// A key that will be kept.
    Fresh(Text),
    /// A key whose value is read and dropped: it was refused.
    Refused,
}

/// Nothing after it can be trusted: stop reading the file.
struct Stop;

impl Builder<'_> {
    fn run<'input>(&mut self, parser: &mut Parser<'input, StrInput<'input>>) {
        loop {
            match parser.next_event() {
                None => return,
                Some(Ok((event, span))) => {
                    if self.event(event, span).is_err() {
                        return;
                    }
                }
                Some(Err(error)) => {
                    let at = error.marker().byte_offset().unwrap_or(self.file.text.len());
                    self.faults.push(traps::syntax(self.file, error.kind(), at));
                    self.abandon();
                    if self.faults.len() >= MAX_FAULTS || !parser.proceed_next_document().unwrap_or(false) {
                        return;
                    }
                }
            }
        }
    }

    fn abandon(&mut self) {
        self.stack.clear();
        self.root = None;
        self.anchors.clear();
        self.open_anchors.clear();
    }

    fn event(&mut self, event: Event<'_>, span: granit_parser::Span) -> Result<(), Stop> {
        let tag_span = span.tag_span().and_then(|span| span.byte_range());
        let span = span.byte_range().map_or_else(Span::default, |range| Span::new(range.start, range.end));
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let mut style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal => Style::Literal,
                    ScalarStyle::Folded => Style::Folded,
                };
                if let Some(tag) = tag {
                    if tag.core_suffix() != Some("str") {
                        let span = self.tag(tag_span, span);
                        return self.node(Node { span, kind: NodeKind::Refused }, anchor);
                    }
                    if style == Style::Plain {
                        style = Style::Tagged;
                    }
                }
                let mut value = value.into_owned();
                if style == Style::Plain && span.start == span.end {
                    // The scanner says `~` for a value that is not there.
                    value.clear();
                }
                self.node(Node { span, kind: NodeKind::Scalar(Text { value, style, span }) }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                if tag.is_some() {
                    self.tag(tag_span, span);
                }
                self.open(span, anchor, OpenKind::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                if tag.is_some() {
                    self.tag(tag_span, span);
                }
                self.open(span, anchor, OpenKind::Map { entries: Vec::new(), seen: HashMap::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(id) => self.alias(id, span),
            Event::UnresolvedAlias(name) => {
                self.faults.push(traps::unknown_alias(self.file, &name, span));
                self.node(Node { span, kind: NodeKind::Refused }, 0)
            }
            Event::DocumentEnd => {
                if let Some(root) = self.root.take()
                    && !root.is_null()
                {
                    self.documents.push(root);
                }
                self.abandon();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reports a tag; gives its place.
    fn tag(&mut self, tag: Option<std::ops::Range<usize>>, node: Span) -> Span {
        let span = tag.map_or(node, |range| Span::new(range.start, range.end));
        self.fault(traps::tag(self.file, span));
        span
    }

    /// Past the limit a fault is dropped; the first hundred have been told.
    fn fault(&mut self, fault: Diagnostic) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    fn open(&mut self, span: Span, anchor: usize, kind: OpenKind) -> Result<(), Stop> {
        self.count(1, span)?;
        if self.stack.len() >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        if anchor != 0 {
            self.open_anchors.insert(anchor);
        }
        self.stack.push(Open { span, anchor, kind });
        Ok(())
    }

    fn too_deep(&mut self, span: Span) -> Stop {
        self.faults.push(
            Diagnostic::error(
                "too-deep",
                format!("lists and mappings are nested more than {MAX_DEPTH} deep"),
                self.file.at(span),
            )
            .help("no Kubernetes object needs this; look for a missing closing bracket or a wrong indentation"),
        );
        Stop
    }

    fn close(&mut self, end: Span) -> Result<(), Stop> {
        let Some(open) = self.stack.pop() else { return Ok(()) };
        let kind = match open.kind {
            OpenKind::List(items) => NodeKind::List(items),
            OpenKind::Map { entries, .. } => NodeKind::Map(entries),
        };
        // A block collection has no closing bracket: its end event stands where the next thing begins.
        let last = match &kind {
            NodeKind::List(items) => items.last().map(|node| node.span.end),
            NodeKind::Map(entries) => entries.last().map(|entry| entry.value.span.end.max(entry.key.span.end)),
            NodeKind::Scalar(_) | NodeKind::Refused => None,
        };
        let closed_by_bracket = end.end > end.start;
        let end = if closed_by_bracket { end.end } else { last.unwrap_or(end.end).min(end.end) };
        let span = Span::new(open.span.start, end.max(open.span.end));
        self.open_anchors.remove(&open.anchor);
        self.keep(Node { span, kind }, open.anchor)
    }

    fn node(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        self.count(1, node.span)?;
        self.keep(node, anchor)
    }

    /// Puts a finished node where it belongs, and remembers it for aliases. Anchored nodes inside anchored nodes are
    /// remembered several times over, so what is remembered has a bound of its own.
    fn keep(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        if anchor != 0 {
            self.anchored = self.anchored.saturating_add(weigh(&node).nodes);
            if self.anchored > MAX_NODES {
                self.faults.push(
                    Diagnostic::error("alias-expansion", "too much of this file is anchored", self.file.at(node.span))
                        .help("remove the anchors (`&name`) that no alias uses"),
                );
                return Err(Stop);
            }
            self.anchors.insert(anchor, node.clone());
        }
        self.add(node);
        Ok(())
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<(), Stop> {
        if self.open_anchors.contains(&id) {
            self.faults.push(
                Diagnostic::error(
                    "alias-in-itself",
                    "this alias stands inside the node that it stands for",
                    self.file.at(span),
                )
                .help("write the value out"),
            );
            return Err(Stop);
        }
        let Some(node) = self.anchors.get(&id) else { return Ok(()) };
        let Weight { nodes, bytes, depth } = weigh(node);
        if self.stack.len() + depth > MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        if self.nodes.saturating_add(nodes) > MAX_NODES || self.alias_bytes > MAX_ALIAS_BYTES {
            self.faults.push(
                Diagnostic::error("alias-expansion", "the aliases of this file stand for too much", self.file.at(span))
                    .label(format!("with this one, more than {MAX_NODES} nodes or {MAX_ALIAS_BYTES} bytes"))
                    .help("aliases of aliases multiply; write the values out, or use `spec.variables`"),
            );
            return Err(Stop);
        }
        self.nodes += nodes;
        let node = node.clone();
        self.add(node);
        Ok(())
    }

    fn count(&mut self, nodes: usize, span: Span) -> Result<(), Stop> {
        self.nodes += nodes;
        if self.nodes <= MAX_NODES {
            return Ok(());
        }
        self.faults.push(
            Diagnostic::error(
                "too-many-nodes",
                format!("the file has more than {MAX_NODES} keys, values and list items"),
                self.file.at(span),
            )
            .help("split it into several files"),
        );
        Err(Stop)
    }

    /// Into the open collection, or at the root.
    fn add(&mut self, node: Node) {
        let file = self.file;
        let fault = match self.stack.last_mut().map(|open| &mut open.kind) {
            None => {
                self.root = Some(node);
                None
            }
            Some(OpenKind::List(items)) => {
                items.push(node);
                None
            }
            Some(OpenKind::Map { entries, seen, key }) => match key.take() {
                None => {
                    let (fresh, fault) = as_key(file, node, seen);
                    *key = Some(fresh);
                    fault
                }
                Some(Key::Fresh(key)) => {
                    entries.push(Entry { key, value: node });
                    None
                }
                Some(Key::Refused) => None,
            },
        };
        if let Some(fault) = fault {
            self.fault(fault);
        }
    }
}

/// Judges a node in a key's place.
fn as_key(file: &Arc<SourceFile>, node: Node, seen: &mut HashMap<String, Span>) -> (Key, Option<Diagnostic>) {
    let text = match node.kind {
        NodeKind::Scalar(text) => text,
        NodeKind::List(_) | NodeKind::Map(_) => {
            return (Key::Refused, Some(traps::key_not_text(file, node.span)));
        }
        NodeKind::Refused => return (Key::Refused, None),
    };
    if text.style == Style::Plain && text.value == "<<" {
        let fault = Diagnostic::error("merge-key", "`<<` (merge) is not part of YAML 1.2", file.at(text.span))
            .help("write the keys out, or repeat the whole value with an alias (`key: *name`)");
        return (Key::Refused, Some(fault));
    }
    if let Err(bent) = text.resolve() {
        let mut fault = Diagnostic::error("ambiguous-scalar", bent.message, file.at(text.span));
        fault.help = bent.help;
        return (Key::Refused, Some(fault));
    }
    if let Some(first) = seen.get(&text.value) {
        let fault =
            Diagnostic::error("duplicate-key", format!("the key `{}` is there twice", text.value), file.at(text.span))
                .label("the second time")
                .related(file.at(*first), "first here")
                .help("keep one of the two");
        return (Key::Refused, Some(fault));
    }
    seen.insert(text.value.clone(), text.span);
    (Key::Fresh(text), None)
}

/// What a subtree costs when it is copied.
#[derive(Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    /// Collections inside each other.
    depth: usize,
}

fn weigh(node: &Node) -> Weight {
    let mut total = Weight { nodes: 1, ..Weight::default() };
    let mut add = |node: &Node, key: usize| {
        let weight = weigh(node);
        total.nodes += weight.nodes;
        total.bytes += weight.bytes + key;
        total.depth = total.depth.max(weight.depth);
    };
    match &node.kind {
        NodeKind::Refused => return Weight { nodes: 1, ..Weight::default() },
        NodeKind::Scalar(text) => return Weight { nodes: 1, bytes: text.value.len(), depth: 0 },
        NodeKind::List(items) => items.iter().for_each(|item| add(item, 0)),
        NodeKind::Map(entries) => entries.iter().for_each(|entry| add(&entry.value, entry.key.value.len())),
    }
    total.depth += 1;
    total
}

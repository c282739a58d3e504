//! A tree of stacks with a count and a value for each: device time by ranges and kernels.
//!
//! Stacks are given from the outside inwards. The tree holds each common beginning once; what does not fit counts for the
//! deepest frame that does.

use std::collections::HashMap;

use gputrail_record::number_map::NumberMap;

/// Maximum number of nodes.
const MAX_NODES: usize = 1 << 18;
/// The root, which has no frame.
const ROOT: u32 = 0;

#[derive(Copy, Clone, Debug, Default)]
struct StackNode {
    parent: u32,
    frame: u32,
    count: u64,
    value: u64,
}

/// Stacks and their values.
#[derive(Debug)]
pub struct StackTree {
    names: Vec<Box<str>>,
    frames: HashMap<Box<str>, u32>,
    nodes: Vec<StackNode>,
    children: NumberMap<(u32, u32), u32>,
}

impl Default for StackTree {
    fn default() -> StackTree {
        StackTree {
            names: Vec::new(),
            frames: HashMap::new(),
            nodes: vec![StackNode::default()],
            children: NumberMap::default(),
        }
    }
}

impl StackTree {
    /// Adds a value to a stack.
    pub fn add<'f>(&mut self, stack: impl Iterator<Item = &'f str>, value: u64) {
        self.add_many(stack, 1, value);
    }

    /// Adds the sum of `count` values to a stack.
    pub fn add_many<'f>(&mut self, stack: impl Iterator<Item = &'f str>, count: u64, value: u64) {
        let mut node = ROOT;
        for name in stack {
            let frame = self.frame(name);
            let Some(child) = self.child(node, frame) else {
                break;
            };
            node = child;
        }
        let node = &mut self.nodes[node as usize];
        node.count += count;
        node.value = node.value.saturating_add(value);
    }

    fn frame(&mut self, name: &str) -> u32 {
        if let Some(frame) = self.frames.get(name) {
            return *frame;
        }
        if self.names.len() >= MAX_NODES {
            return u32::MAX;
        }
        let frame = self.names.len() as u32;
        self.names.push(name.into());
        self.frames.insert(name.into(), frame);
        frame
    }

    fn child(&mut self, parent: u32, frame: u32) -> Option<u32> {
        if let Some(child) = self.children.get(&(parent, frame)) {
            return Some(*child);
        }
        if self.nodes.len() >= MAX_NODES || frame == u32::MAX {
            return None;
        }
        let child = self.nodes.len() as u32;
        self.nodes.push(StackNode {
            parent,
            frame,
            ..StackNode::default()
        });
        self.children.insert((parent, frame), child);
        Some(child)
    }

    /// The names of all frames.
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// All stacks with a value: their frames, outermost first, the count and the value; in the order in which they came.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<u32>, u64, u64)> {
        let with_value = self.nodes.iter().zip(0_u32..);
        let with_value = with_value.filter(|(node, _)| node.count > 0);
        with_value.map(|(node, number)| {
            let mut frames = Vec::new();
            let mut at = number;
            while at != ROOT {
                let one = &self.nodes[at as usize];
                frames.push(one.frame);
                at = one.parent;
            }
            frames.reverse();
            (frames, node.count, node.value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_keep_their_frames_and_sums() {
        let mut tree = StackTree::default();
        for (stack, value) in [
            (&["step", "forward", "gemm"][..], 10),
            (&["step", "gemm"], 5),
            (&["step", "forward", "gemm"], 7),
        ] {
            tree.add(stack.iter().copied(), value);
        }
        let names = tree.names();
        let told: Vec<_> = tree
            .stacks()
            .map(|(frames, count, value)| {
                let frames = frames.iter().map(|frame| &*names[*frame as usize]);
                (frames.collect::<Vec<_>>().join(";"), count, value)
            })
            .collect();
        let expected = [("step;forward;gemm", 2, 17), ("step;gemm", 1, 5)];
        assert_eq!(
            told,
            expected.map(|(stack, count, value)| (stack.to_owned(), count, value))
        );
    }
}

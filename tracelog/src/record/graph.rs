//! The graph's changes, as `callgraph` tells them.

use lucce_callgraph::{
    Anchor, AnchorId, Base, ContextId, Effect, MethodId, Node, SiteId, Transition, Version,
};

use super::Body;
use crate::wire::{In, Malformed, Out, Parsed};

impl Body<'_> for Base {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.version.0);
        if let Some(bits) = self.anchor_bits {
            out.num(bits);
        }
    }

    fn decode(input: &mut In<'_>) -> Parsed<Self> {
        Ok(Base::new(Version(input.small()?)))
    }
}

/// A base whose numbers are divided in another way.
pub(super) struct Divided;

impl Divided {
    pub(super) fn decode(input: &mut In<'_>) -> Parsed<Base> {
        Ok(Base {
            version: Version(input.small()?),
            anchor_bits: Some(input.small()?),
        })
    }
}

impl Body<'_> for Node {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.version.0);
        out.num(self.method.0);
        out.num(self.capacity);
    }

    fn decode(input: &mut In<'_>) -> Parsed<Self> {
        Ok(Node {
            version: Version(input.small()?),
            method: MethodId(input.small()?),
            capacity: input.num()?,
        })
    }
}

impl Body<'_> for Transition {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.version.0);
        out.num(self.site.0);
        out.num(self.caller.0);
        out.num(self.callee.0);
        match self.effect {
            Effect::Anchoring => out.byte(0),
            Effect::Additive { to, av } => {
                out.byte(1);
                out.num(to.0);
                out.num(av);
            }
        }
    }

    fn decode(input: &mut In<'_>) -> Parsed<Self> {
        Ok(Transition {
            version: Version(input.small()?),
            site: SiteId(input.small()?),
            caller: MethodId(input.small()?),
            callee: MethodId(input.small()?),
            effect: match input.byte()? {
                0 => Effect::Anchoring,
                1 => Effect::Additive {
                    to: Version(input.small()?),
                    av: input.num()?,
                },
                _ => return Err(Malformed("unknown effect of a transition")),
            },
        })
    }
}

impl Body<'_> for Anchor {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.base.0);
        out.num(self.id.0);
        out.num(self.head.0);
        out.byte(self.parent.is_some().into());
        if let Some((context, site, method)) = self.parent {
            out.fixed(context.0);
            out.num(site.0);
            out.num(method.0);
        }
    }

    fn decode(input: &mut In<'_>) -> Parsed<Self> {
        Ok(Anchor {
            base: Version(input.small()?),
            id: AnchorId(input.small()?),
            head: MethodId(input.small()?),
            parent: match input.byte()? {
                0 => None,
                _ => Some((
                    ContextId(input.fixed()?),
                    SiteId(input.small()?),
                    MethodId(input.small()?),
                )),
            },
        })
    }
}

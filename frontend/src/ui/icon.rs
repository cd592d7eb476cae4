//! Icons, drawn with the colour of the text around them.

use leptos::prelude::*;

/// What is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Icon {
    /// Overview.
    Gauge,
    /// Nodes.
    Server,
    /// Tunnels.
    Route,
    /// Forwards.
    Arrow,
    /// Settings.
    Sliders,
    /// Audit log.
    List,
    /// Add.
    Plus,
    /// Less.
    Minus,
    /// Back.
    Left,
    /// On.
    Right,
    /// Close, remove.
    Cross,
    /// Move up.
    Up,
    /// Move down.
    Down,
    /// Reorder by dragging.
    Grip,
    /// Copy.
    Copy,
    /// Success.
    Check,
    /// Attention.
    Warning,
    /// Open the navigation.
    Menu,
    /// Pinned.
    Pin,
    /// Search.
    Search,
    /// Log out.
    Leave,
}

fn path(icon: Icon) -> &'static str {
    match icon {
        Icon::Gauge => "M4 19a9 9 0 1 1 16 0M12 15l4-5",
        Icon::Server => "M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01",
        Icon::Route => "M6 6h8a4 4 0 0 1 0 8h-4a3 3 0 0 0 0 5h8M4 6h2M18 19h2",
        Icon::Arrow => "M4 8h14M14 4l4 4-4 4M20 16H6M10 12l-4 4 4 4",
        Icon::Sliders => "M5 4v7M5 15v5M12 4v3M12 11v9M19 4v10M19 18v2M3 13h4M10 9h4M17 16h4",
        Icon::List => "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
        Icon::Plus => "M12 5v14M5 12h14",
        Icon::Minus => "M5 12h14",
        Icon::Left => "M15 5l-7 7 7 7",
        Icon::Right => "M9 5l7 7-7 7",
        Icon::Cross => "M6 6l12 12M18 6 6 18",
        Icon::Up => "M12 19V6M6 11l6-6 6 6",
        Icon::Down => "M12 5v13M6 13l6 6 6-6",
        Icon::Grip => "M9 6h.01M15 6h.01M9 12h.01M15 12h.01M9 18h.01M15 18h.01",
        Icon::Copy => "M9 9h11v11H9zM5 15H4V4h11v1",
        Icon::Check => "M5 12.5 10 17 19 7",
        Icon::Warning => "M12 4 2.5 20h19zM12 10v4M12 17h.01",
        Icon::Menu => "M4 7h16M4 12h16M4 17h16",
        Icon::Pin => "M9 4h6l-1 6 4 4H6l4-4zM12 14v6",
        Icon::Search => "M10.5 17a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13zM15.5 15.5 20 20",
        Icon::Leave => "M14 4h6v16h-6M4 12h11M11 8l4 4-4 4",
    }
}

/// An icon. It says nothing to screen readers: the element around it does.
pub fn icon(which: Icon) -> AnyView {
    view! {
        <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
            <path d=path(which)></path>
        </svg>
    }
    .into_any()
}

-- Times are UTC milliseconds, booleans 0 or 1, lists JSON. Tables that other panels have too keep their names.

CREATE TABLE user (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    username      TEXT    NOT NULL UNIQUE CHECK (length(username) BETWEEN 1 AND 50),
    password_hash TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN ('admin', 'viewer')),
    created_time  INTEGER NOT NULL
) STRICT;

-- A token is kept as its SHA-256 only.
CREATE TABLE session (
    token_hash   TEXT    PRIMARY KEY CHECK (length(token_hash) = 64),
    user_id      INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
    created_time INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX session_user ON session (user_id);

CREATE TABLE setting (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    version   INTEGER NOT NULL CHECK (version > 0),
    best_exit TEXT    NOT NULL CHECK (json_valid(best_exit))
) STRICT;

CREATE TABLE node (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    revision        INTEGER NOT NULL CHECK (revision > 0),
    name            TEXT    NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 50),
    -- SHA-256 of the node secret in hex: the key of its link. The secret itself is kept nowhere.
    link_key        TEXT    NOT NULL UNIQUE CHECK (length(link_key) = 64),
    server_ip       TEXT    NOT NULL,
    server_ip_v4    TEXT    NOT NULL,
    server_ip_v6    TEXT    NOT NULL,
    -- The ports it may use, `10000-60000` for example.
    port            TEXT    NOT NULL,
    interface_name  TEXT    NOT NULL,
    tcp_listen_addr TEXT    NOT NULL,
    udp_listen_addr TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    capabilities    TEXT    NOT NULL CHECK (json_valid(capabilities)),
    last_seen       INTEGER,
    created_time    INTEGER NOT NULL,
    updated_time    INTEGER NOT NULL
) STRICT;

CREATE TABLE tunnel (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    version        INTEGER NOT NULL CHECK (version > 0),
    name           TEXT    NOT NULL UNIQUE CHECK (length(name) BETWEEN 2 AND 50),
    -- 1 port, 2 tunnel
    type           INTEGER NOT NULL CHECK (type IN (1, 2)),
    status         INTEGER NOT NULL CHECK (status IN (0, 1)),
    ip_preference  TEXT    NOT NULL CHECK (ip_preference IN ('auto', 'v4', 'v6')),
    relay_username TEXT    NOT NULL CHECK (length(relay_username) > 0),
    relay_password TEXT    NOT NULL CHECK (length(relay_password) > 0),
    created_time   INTEGER NOT NULL,
    updated_time   INTEGER NOT NULL
) STRICT;

CREATE TABLE forward (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    version      INTEGER NOT NULL CHECK (version > 0),
    tunnel_id    INTEGER NOT NULL REFERENCES tunnel (id) ON DELETE CASCADE,
    -- Part of the names of its services, so it stays when the user is gone.
    user_id      INTEGER NOT NULL,
    name         TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 50),
    remote_addr  TEXT    NOT NULL CHECK (json_valid(remote_addr) AND json_array_length(remote_addr) > 0),
    strategy     TEXT    NOT NULL,
    status       INTEGER NOT NULL CHECK (status IN (0, 1)),
    listen_port  INTEGER NOT NULL CHECK (listen_port BETWEEN 1 AND 65535),
    in_ip        TEXT,
    created_time INTEGER NOT NULL,
    updated_time INTEGER NOT NULL
) STRICT;
CREATE INDEX forward_tunnel ON forward (tunnel_id);

-- Who uses which port of a node: a relay of a tunnel or a forward, never two.
CREATE TABLE node_port (
    node_id    INTEGER NOT NULL REFERENCES node (id),
    port       INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),
    tunnel_id  INTEGER REFERENCES tunnel (id) ON DELETE CASCADE,
    forward_id INTEGER REFERENCES forward (id) ON DELETE CASCADE,
    PRIMARY KEY (node_id, port),
    CHECK ((tunnel_id IS NULL) <> (forward_id IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX node_port_tunnel ON node_port (tunnel_id);
CREATE INDEX node_port_forward ON node_port (forward_id);

-- One row per node of a tunnel.
CREATE TABLE chain_tunnel (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    tunnel_id       INTEGER NOT NULL REFERENCES tunnel (id) ON DELETE CASCADE,
    -- 1 entry, 2 middle, 3 exit
    chain_type      INTEGER NOT NULL CHECK (chain_type IN (1, 2, 3)),
    -- Middle: number of the hop, from 1. Entry and exit: place in the group, from 1.
    inx             INTEGER NOT NULL CHECK (inx > 0),
    node_id         INTEGER NOT NULL REFERENCES node (id),
    strategy        TEXT    NOT NULL,
    protocol        TEXT    NOT NULL,
    max_fails       INTEGER NOT NULL CHECK (max_fails > 0),
    fail_timeout_ms INTEGER NOT NULL CHECK (fail_timeout_ms > 0),
    port            INTEGER,
    connect_ip      TEXT,
    UNIQUE (tunnel_id, node_id),
    -- Entries have no relay, all others need a port.
    CHECK ((chain_type = 1) = (port IS NULL)),
    -- Checked at the commit: a tunnel and its ports go together, in any order.
    FOREIGN KEY (node_id, port) REFERENCES node_port (node_id, port) DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE INDEX chain_tunnel_node ON chain_tunnel (node_id);

-- Where a forward listens: every entry node of its tunnel.
CREATE TABLE forward_port (
    forward_id INTEGER NOT NULL REFERENCES forward (id) ON DELETE CASCADE,
    node_id    INTEGER NOT NULL REFERENCES node (id),
    port       INTEGER NOT NULL,
    PRIMARY KEY (forward_id, node_id),
    FOREIGN KEY (node_id, port) REFERENCES node_port (node_id, port) DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;
CREATE INDEX forward_port_node ON forward_port (node_id);

-- What an owner's agent has accepted.
CREATE TABLE best_exit_decision (
    tunnel_id      INTEGER NOT NULL REFERENCES tunnel (id) ON DELETE CASCADE,
    owner_node_id  INTEGER NOT NULL REFERENCES node (id) ON DELETE CASCADE,
    applied_order  TEXT    NOT NULL CHECK (json_valid(applied_order)),
    -- On its way to the agent; after a restart the agent runs either this or the applied order.
    proposed_order TEXT    CHECK (json_valid(proposed_order)),
    last_switch_at INTEGER,
    last_switch    TEXT    CHECK (json_valid(last_switch)),
    PRIMARY KEY (tunnel_id, owner_node_id)
) STRICT, WITHOUT ROWID;

-- Nodes are plain numbers here: the log outlives a node's place in the tunnel, and the node.
CREATE TABLE decision_log (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    tunnel_id     INTEGER NOT NULL REFERENCES tunnel (id) ON DELETE CASCADE,
    at            INTEGER NOT NULL,
    owner_node_id INTEGER NOT NULL,
    owner_name    TEXT    NOT NULL,
    from_exit     INTEGER,
    to_exit       INTEGER,
    reason_code   TEXT    NOT NULL,
    reason        TEXT    NOT NULL CHECK (json_valid(reason)),
    candidates    TEXT    NOT NULL CHECK (json_valid(candidates))
) STRICT;
CREATE INDEX decision_log_tunnel ON decision_log (tunnel_id, id);
CREATE INDEX decision_log_at ON decision_log (at);

CREATE TABLE leg (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    from_node_id INTEGER NOT NULL REFERENCES node (id) ON DELETE CASCADE,
    target       TEXT    NOT NULL,
    UNIQUE (from_node_id, target)
) STRICT;

CREATE TABLE leg_sample (
    leg_id     INTEGER NOT NULL REFERENCES leg (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('measured', 'failed', 'unmeasured')),
    latency_ms REAL,
    loss       REAL,
    reason     TEXT,
    PRIMARY KEY (leg_id, at),
    CHECK ((state = 'measured') = (latency_ms IS NOT NULL)),
    CHECK (latency_ms IS NULL OR (latency_ms >= 0 AND loss >= 0 AND loss <= 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX leg_sample_at ON leg_sample (at);

CREATE TABLE pin (
    tunnel_id     INTEGER NOT NULL REFERENCES tunnel (id) ON DELETE CASCADE,
    -- NULL: all owners
    owner_node_id INTEGER REFERENCES node (id) ON DELETE CASCADE,
    exit_node_id  INTEGER NOT NULL REFERENCES node (id) ON DELETE CASCADE,
    until         INTEGER,
    reason        TEXT    NOT NULL CHECK (length(reason) BETWEEN 1 AND 200),
    author        TEXT    NOT NULL,
    created_time  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX pin_scope ON pin (tunnel_id, coalesce(owner_node_id, 0));

CREATE TABLE audit_log (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    username TEXT    NOT NULL,
    action   TEXT    NOT NULL,
    object   TEXT    NOT NULL,
    detail   TEXT    NOT NULL
) STRICT;

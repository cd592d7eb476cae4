-- What persons have chosen in groups that leave the choice to them. An owner dials one group of a tunnel, so it names
-- the group too.
CREATE TABLE choice (
    tunnel_id     INTEGER NOT NULL REFERENCES tunnel (id) ON DELETE CASCADE,
    owner_node_id INTEGER NOT NULL REFERENCES node (id) ON DELETE CASCADE,
    -- NULL: taken back, and the owner is still to be told
    node_id       INTEGER REFERENCES node (id) ON DELETE CASCADE,
    author        TEXT    NOT NULL,
    created_time  INTEGER NOT NULL,
    PRIMARY KEY (tunnel_id, owner_node_id)
) STRICT, WITHOUT ROWID;

-- What the rounds of a minute, and of a quarter of an hour, say about a leg. The means of any step that is a multiple of
-- the width are the same as from the rounds themselves: sums and counts are kept, not means.
CREATE TABLE leg_rollup (
    leg_id      INTEGER NOT NULL REFERENCES leg (id) ON DELETE CASCADE,
    width_ms    INTEGER NOT NULL CHECK (width_ms IN (60000, 900000)),
    -- first moment
    at          INTEGER NOT NULL CHECK (at % width_ms = 0),
    -- rounds that were measured, and that failed; both 0: none could be measured
    measured    INTEGER NOT NULL CHECK (measured >= 0),
    failed      INTEGER NOT NULL CHECK (failed >= 0),
    -- of the measured
    latency_sum REAL    NOT NULL,
    -- of both; a failed round counts 1
    loss_sum    REAL    NOT NULL,
    PRIMARY KEY (leg_id, width_ms, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX leg_rollup_at ON leg_rollup (width_ms, at);

-- Which contexts of a service are new since a version: no run had them that began before the first one of the version.
-- service: the service
-- version: the first version that is new
-- event=alloc: the kind of event
-- top=20: so many rows
WITH since AS (
    SELECT MIN(r.start_ms) AS start_ms
    FROM runs r CROSS JOIN parameters p
    WHERE r.service = p.p_service AND r.version = p.p_version
), chosen AS (
    SELECT r.run_id, CASE WHEN r.start_ms < n.start_ms THEN 1 ELSE 0 END AS is_before
    FROM runs r
    CROSS JOIN since n
    CROSS JOIN parameters p
    WHERE r.service = p.p_service
), known AS (
    SELECT DISTINCT e.stack_id
    FROM chosen c
    JOIN events e ON e.run_id = c.run_id
    CROSS JOIN parameters p
    WHERE e.event = p.p_event AND c.is_before = 1
), old AS (
    SELECT DISTINCT s.stack_by_method
    FROM known k JOIN stacks s ON s.stack_id = k.stack_id
), fresh AS (
    SELECT s.stack_id, s.stack_by_method
    FROM stacks s LEFT JOIN old o ON o.stack_by_method = s.stack_by_method
    WHERE o.stack_by_method IS NULL
), counted AS (
    -- Runs are told apart for these contexts only.
    SELECT e.stack_id, MAX(n.stack_by_method) AS stack_by_method, COUNT(DISTINCT e.run_id) AS runs,
        SUM(e.count) AS events, SUM(e.value) AS amount
    FROM fresh n
    JOIN events e ON e.stack_id = n.stack_id
    JOIN chosen c ON c.run_id = e.run_id
    CROSS JOIN parameters p
    WHERE e.event = p.p_event
    GROUP BY e.stack_id
), paths AS (
    SELECT stack_by_method, MIN(stack_id) AS stack_id, MAX(runs) AS runs, SUM(events) AS events, SUM(amount) AS amount
    FROM counted
    GROUP BY stack_by_method
), ranked AS (
    SELECT ROW_NUMBER() OVER (ORDER BY amount DESC, events DESC, stack_by_method) AS place, *
    FROM paths
)
SELECT r.place, r.stack_by_method, r.stack_id, f.class, f.method, s.depth, r.runs,
    CAST(r.events AS BIGINT) AS events, CAST(r.amount AS BIGINT) AS amount
FROM ranked r
JOIN stacks s ON s.stack_id = r.stack_id
JOIN frames f ON f.frame_id = CASE WHEN s.application_id = '00000000000000000000000000000000'
    THEN s.frame_id ELSE s.application_id END
CROSS JOIN parameters p
WHERE r.place <= CAST(p.p_top AS INT)
ORDER BY r.place

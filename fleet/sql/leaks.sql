-- What is alive and was followed, by service: what was allocated where, and how much of it each run has on average.
-- service=: of this service only; empty: of all
-- top=20: so many rows
WITH counted AS (
    SELECT e.service, e.stack_id, e.type, SUM(e.count) AS objects, SUM(e.value) AS bytes,
        COUNT(DISTINCT e.run_id) AS runs
    FROM events e CROSS JOIN parameters p
    WHERE e.event = 'inuse' AND p.p_service IN ('', e.service)
    GROUP BY e.service, e.stack_id, e.type
), ranked AS (
    SELECT ROW_NUMBER() OVER (ORDER BY bytes DESC, objects DESC, service, stack_id, type) AS place, *
    FROM counted
)
SELECT r.place, r.service, r.type, f.class, f.method, f.line, r.stack_id, r.runs,
    CAST(r.objects AS BIGINT) AS objects, CAST(r.bytes AS BIGINT) AS bytes
FROM ranked r
JOIN stacks s ON s.stack_id = r.stack_id
JOIN frames f ON f.frame_id = CASE WHEN s.application_id = '00000000000000000000000000000000'
    THEN s.frame_id ELSE s.application_id END
CROSS JOIN parameters p
WHERE r.place <= CAST(p.p_top AS INT)
ORDER BY r.place

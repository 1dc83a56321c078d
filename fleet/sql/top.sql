-- What allocates most, by service: the innermost frames of the program's own code.
-- service=: of this service only; empty: of all
-- event=alloc: the kind of event
-- top=20: so many rows
WITH counted AS (
    SELECT e.service, e.stack_id, e.type, SUM(e.count) AS events, SUM(e.value) AS amount
    FROM events e CROSS JOIN parameters p
    WHERE e.event = p.p_event AND p.p_service IN ('', e.service)
    GROUP BY e.service, e.stack_id, e.type
), placed AS (
    SELECT c.service, f.class, f.method, f.line, c.type,
        CAST(SUM(c.events) AS BIGINT) AS events, CAST(SUM(c.amount) AS BIGINT) AS amount
    FROM counted c
    JOIN stacks s ON s.stack_id = c.stack_id
    JOIN frames f ON f.frame_id = CASE WHEN s.application_id = '00000000000000000000000000000000'
        THEN s.frame_id ELSE s.application_id END
    GROUP BY c.service, f.class, f.method, f.line, c.type
), ranked AS (
    SELECT ROW_NUMBER() OVER (ORDER BY amount DESC, events DESC, service, class, method, line, type) AS place, *
    FROM placed
)
SELECT r.place, r.service, r.class, r.method, r.line, r.type, r.events, r.amount
FROM ranked r CROSS JOIN parameters p
WHERE r.place <= CAST(p.p_top AS INT)
ORDER BY r.place

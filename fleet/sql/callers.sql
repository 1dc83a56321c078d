-- Who calls a method, in all services, and what happened in these calls; a stack counts once for each caller.
-- class: the method's class, as java.util.HashMap
-- method: the method's name
-- event=alloc: the kind of event
-- top=20: so many rows
WITH called AS (
    SELECT DISTINCT t.stack_id, c.class, c.method
    FROM through t
    JOIN frames f ON f.frame_id = t.frame_id
    JOIN frames c ON c.frame_id = t.caller_id
    CROSS JOIN parameters p
    WHERE f.class = p.p_class AND f.method = p.p_method
), counted AS (
    SELECT e.service, c.class, c.method, COUNT(DISTINCT e.stack_id) AS contexts,
        CAST(SUM(e.count) AS BIGINT) AS events, CAST(SUM(e.value) AS BIGINT) AS amount
    FROM called c
    JOIN events e ON e.stack_id = c.stack_id
    CROSS JOIN parameters p
    WHERE e.event = p.p_event
    GROUP BY e.service, c.class, c.method
), ranked AS (
    SELECT ROW_NUMBER() OVER (ORDER BY amount DESC, events DESC, service, class, method) AS place, *
    FROM counted
)
SELECT r.place, r.service, r.class, r.method, r.contexts, r.events, r.amount
FROM ranked r CROSS JOIN parameters p
WHERE r.place <= CAST(p.p_top AS INT)
ORDER BY r.place

-- What happened in a method and in all that it called, by service and kind of event; a stack counts once.
-- class: the method's class, as java.util.HashMap
-- method: the method's name
WITH stacks_through AS (
    SELECT DISTINCT t.stack_id
    FROM through t
    JOIN frames f ON f.frame_id = t.frame_id
    CROSS JOIN parameters p
    WHERE f.class = p.p_class AND f.method = p.p_method
)
SELECT e.service, e.event, e.unit, COUNT(DISTINCT e.run_id) AS runs, COUNT(DISTINCT e.stack_id) AS contexts,
    CAST(SUM(e.count) AS BIGINT) AS events, CAST(SUM(e.value) AS BIGINT) AS amount
FROM stacks_through t
JOIN events e ON e.stack_id = t.stack_id
GROUP BY e.service, e.event, e.unit
ORDER BY e.service, e.event, e.unit

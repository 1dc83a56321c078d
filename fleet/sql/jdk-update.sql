-- Which contexts of a service changed after an update of the JDK: for each run, without lines.
-- service: the service
-- from: the JDK before, as 17
-- to: the JDK behind, as 21
-- event=alloc: the kind of event
-- percent=10: changes that are smaller are not told
-- top=20: so many rows
WITH chosen AS (
    SELECT r.run_id, r.runs, CASE WHEN r.jdk = CAST(p.p_from AS INT) THEN 1 ELSE 0 END AS is_before
    FROM runs r CROSS JOIN parameters p
    WHERE r.service = p.p_service AND r.jdk IN (CAST(p.p_from AS INT), CAST(p.p_to AS INT))
), sizes AS (
    SELECT CAST(SUM(CASE WHEN is_before = 1 THEN runs ELSE 0 END) AS DOUBLE) AS runs_before,
        CAST(SUM(CASE WHEN is_before = 0 THEN runs ELSE 0 END) AS DOUBLE) AS runs_behind
    FROM chosen
), counted AS (
    SELECT e.stack_id, c.is_before, SUM(e.value) AS amount
    FROM chosen c
    JOIN events e ON e.run_id = c.run_id
    CROSS JOIN parameters p
    WHERE e.event = p.p_event
    GROUP BY e.stack_id, c.is_before
), paths AS (
    SELECT s.stack_by_method, MIN(s.stack_id) AS stack_id,
        SUM(CASE WHEN c.is_before = 1 THEN c.amount ELSE 0 END) AS amount_before,
        SUM(CASE WHEN c.is_before = 0 THEN c.amount ELSE 0 END) AS amount_behind
    FROM counted c
    JOIN stacks s ON s.stack_id = c.stack_id
    GROUP BY s.stack_by_method
), averages AS (
    SELECT a.stack_by_method, a.stack_id,
        CAST(FLOOR(CAST(a.amount_before AS DOUBLE) / z.runs_before) AS BIGINT) AS before_per_run,
        CAST(FLOOR(CAST(a.amount_behind AS DOUBLE) / z.runs_behind) AS BIGINT) AS behind_per_run
    FROM paths a CROSS JOIN sizes z
    WHERE z.runs_before > 0 AND z.runs_behind > 0
), changed AS (
    SELECT a.stack_by_method, a.stack_id, a.before_per_run, a.behind_per_run,
        CASE WHEN a.before_per_run = 0 THEN 'new' WHEN a.behind_per_run = 0 THEN 'gone'
            WHEN a.behind_per_run > a.before_per_run THEN 'more' ELSE 'less' END AS what,
        ABS(a.behind_per_run - a.before_per_run) AS difference
    FROM averages a CROSS JOIN parameters p
    WHERE ABS(a.behind_per_run - a.before_per_run) * 100 > a.before_per_run * CAST(p.p_percent AS BIGINT)
), ranked AS (
    SELECT ROW_NUMBER() OVER (ORDER BY difference DESC, stack_by_method) AS place, *
    FROM changed
)
SELECT r.place, r.what, r.stack_id, f.class, f.method, s.depth, r.before_per_run, r.behind_per_run
FROM ranked r
JOIN stacks s ON s.stack_id = r.stack_id
JOIN frames f ON f.frame_id = CASE WHEN s.application_id = '00000000000000000000000000000000'
    THEN s.frame_id ELSE s.application_id END
CROSS JOIN parameters p
WHERE r.place <= CAST(p.p_top AS INT)
ORDER BY r.place

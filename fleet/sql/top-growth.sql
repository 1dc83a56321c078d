-- What grew most from one version to another, for each run: the innermost frames of the program's own code.
-- from: the version before
-- to: the version behind
-- service=: of this service only; empty: of all
-- event=alloc: the kind of event
-- top=20: so many rows
WITH chosen AS (
    SELECT r.run_id, r.service, r.version, r.runs
    FROM runs r CROSS JOIN parameters p
    WHERE r.version IN (p.p_from, p.p_to) AND p.p_service IN ('', r.service)
), sizes AS (
    SELECT c.service,
        SUM(CASE WHEN c.version = p.p_from THEN c.runs ELSE 0 END) AS runs_before,
        SUM(CASE WHEN c.version = p.p_to THEN c.runs ELSE 0 END) AS runs_behind
    FROM chosen c CROSS JOIN parameters p
    GROUP BY c.service
), counted AS (
    SELECT c.service, c.version, e.stack_id, e.type, SUM(e.value) AS amount, SUM(e.count) AS events
    FROM chosen c
    JOIN events e ON e.run_id = c.run_id
    CROSS JOIN parameters p
    WHERE e.event = p.p_event
    GROUP BY c.service, c.version, e.stack_id, e.type
), placed AS (
    SELECT c.service, f.class, f.method, c.type,
        SUM(CASE WHEN c.version = p.p_from THEN c.amount ELSE 0 END) AS amount_before,
        SUM(CASE WHEN c.version = p.p_to THEN c.amount ELSE 0 END) AS amount_behind
    FROM counted c
    JOIN stacks s ON s.stack_id = c.stack_id
    JOIN frames f ON f.frame_id = CASE WHEN s.application_id = '00000000000000000000000000000000'
        THEN s.frame_id ELSE s.application_id END
    CROSS JOIN parameters p
    GROUP BY c.service, f.class, f.method, c.type
), averages AS (
    SELECT a.service, a.class, a.method, a.type,
        CAST(FLOOR(CAST(a.amount_before AS DOUBLE) / CAST(z.runs_before AS DOUBLE)) AS BIGINT) AS before_per_run,
        CAST(FLOOR(CAST(a.amount_behind AS DOUBLE) / CAST(z.runs_behind AS DOUBLE)) AS BIGINT) AS behind_per_run
    FROM placed a
    JOIN sizes z ON z.service = a.service
    WHERE z.runs_before > 0 AND z.runs_behind > 0
), ranked AS (
    SELECT ROW_NUMBER() OVER (
            ORDER BY behind_per_run - before_per_run DESC, service, class, method, type) AS place,
        service, class, method, type, before_per_run, behind_per_run,
        behind_per_run - before_per_run AS growth_per_run
    FROM averages
)
SELECT r.place, r.service, r.class, r.method, r.type, r.before_per_run, r.behind_per_run, r.growth_per_run
FROM ranked r CROSS JOIN parameters p
WHERE r.place <= CAST(p.p_top AS INT) AND r.growth_per_run > 0
ORDER BY r.place

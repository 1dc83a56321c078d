-- Whether what was counted is all: runs by service and version, events that were lost, bytes counted of bytes allocated.
-- service=: of this service only; empty: of all
SELECT r.service, r.version, CAST(SUM(r.runs) AS BIGINT) AS runs,
    CAST(SUM(CASE WHEN r.ended THEN r.runs ELSE 0 END) AS BIGINT) AS ended,
    CAST(SUM(r.events) AS BIGINT) AS events, CAST(SUM(r.lost) AS BIGINT) AS lost,
    CAST(SUM(r.counted_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(r.allocated_bytes) AS BIGINT) AS allocated_bytes
FROM runs r CROSS JOIN parameters p
WHERE p.p_service IN ('', r.service)
GROUP BY r.service, r.version
ORDER BY r.service, r.version

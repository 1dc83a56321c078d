-- What each request takes, by service and kind of event: in all, and for each time that it came.
-- service=: of this service only; empty: of all
-- request=: this request only, as GET /orders/{id}; empty: all
-- event=: this kind of event only; empty: all
WITH counted AS (
    SELECT r.service, r.request, r.event, r.unit, SUM(r.count) AS events, SUM(r.value) AS amount
    FROM requests r CROSS JOIN parameters p
    WHERE p.p_service IN ('', r.service) AND p.p_request IN ('', r.request)
    GROUP BY r.service, r.request, r.event, r.unit
), received AS (
    SELECT service, request, SUM(events) AS requests
    FROM counted
    WHERE event = 'request'
    GROUP BY service, request
)
SELECT c.service, c.request, c.event, c.unit, CAST(r.requests AS BIGINT) AS requests,
    CAST(c.events AS BIGINT) AS events, CAST(c.amount AS BIGINT) AS amount,
    CAST(c.events AS DOUBLE) / CAST(r.requests AS DOUBLE) AS events_per_request,
    CAST(c.amount AS DOUBLE) / CAST(r.requests AS DOUBLE) AS amount_per_request
FROM counted c
LEFT JOIN received r ON r.service = c.service AND r.request = c.request
CROSS JOIN parameters p
WHERE c.event <> 'request' AND p.p_event IN ('', c.event)
ORDER BY c.service, c.request, c.event, c.unit

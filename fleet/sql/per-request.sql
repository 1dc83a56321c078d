-- What a request of a service takes, by day: events of a kind for each event that counts requests.
-- service=: of this service only; empty: of all
-- event=alloc: the kind of event
-- request=request: the kind of event of which there is one for each request
WITH days AS (
    SELECT e.service, e.day,
        SUM(CASE WHEN e.event = p.p_request THEN e.count ELSE 0 END) AS requests,
        SUM(CASE WHEN e.event = p.p_event THEN e.count ELSE 0 END) AS events,
        SUM(CASE WHEN e.event = p.p_event THEN e.value ELSE 0 END) AS amount
    FROM events e CROSS JOIN parameters p
    WHERE e.event IN (p.p_event, p.p_request) AND p.p_service IN ('', e.service)
    GROUP BY e.service, e.day
), each_day AS (
    SELECT service, day, CAST(requests AS BIGINT) AS requests,
        CAST(amount AS DOUBLE) / CAST(requests AS DOUBLE) AS amount_per_request,
        CAST(events AS DOUBLE) / CAST(requests AS DOUBLE) AS events_per_request
    FROM days
    WHERE requests > 0
)
SELECT service, day, requests, events_per_request, amount_per_request,
    amount_per_request - LAG(amount_per_request) OVER (PARTITION BY service ORDER BY day) AS growth
FROM each_day
ORDER BY service, day

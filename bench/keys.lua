-- What wrk sends: requests with a key each, drawn at random from many or always the same. Arguments: how many
-- keys there are, and the seed. When it is done it prints what it counted as one line of JSON.
local requests = {}
local keys

function init(arguments)
    keys = tonumber(arguments[1])
    math.randomseed(tonumber(arguments[2]))
    -- Made in advance: to draw one costs the load less than to format it, and it shares a core with others.
    for key = 1, keys do
        requests[key] = wrk.format("GET", nil, { ["x-api-key"] = string.format("key-%06d", key - 1) })
    end
end

function request()
    return requests[keys == 1 and 1 or math.random(keys)]
end

function done(summary)
    local errors = summary.errors
    print(string.format(
        '{"requests":%d,"micros":%d,"failed":%d,"not_2xx":%d}',
        summary.requests, summary.duration,
        errors.connect + errors.read + errors.write + errors.timeout, errors.status
    ))
end

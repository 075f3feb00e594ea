-- queries.sql - sorts, hashes, aggregates, documents and patterns; :turn changes the constants.
-- SPDX-License-Identifier: MIT
SELECT count(*), sum(length(text)) FROM
    (SELECT text FROM document ORDER BY text DESC OFFSET :turn) AS sorted;
SELECT count(*), max(length(names)) FROM
    (SELECT owner, string_agg(text, ',' ORDER BY id) AS names FROM document GROUP BY owner) AS g;
SELECT count(*), sum((a.body->'deep'->>'price')::numeric) FROM document a
JOIN document b ON a.owner = b.id AND b.id % 3 = :turn % 3;
SELECT tag, count(*) FROM
    (SELECT jsonb_array_elements_text(body->'tags') AS tag FROM document) AS tags
GROUP BY tag HAVING count(*) > 100 ORDER BY 2 DESC, 1 LIMIT 3;
SELECT md5(jsonb_agg(body || jsonb_build_object('turn', :turn) ORDER BY id)::text)
FROM document WHERE id % 4 = 0;
SELECT count(*), sum(array_length(parts, 1)) FROM
    (SELECT regexp_split_to_array(text, '[ac]+') AS parts FROM document
     WHERE id % 5 = :turn % 5) AS split;
DO $$
BEGIN
    FOR n IN 1..150 LOOP      -- each statement is parsed and planned anew
        EXECUTE format('SELECT count(*) FROM document a JOIN document b USING (id)
                        WHERE a.id < %s', n);
    END LOOP;
END $$;

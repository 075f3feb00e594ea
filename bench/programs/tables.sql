-- tables.sql - a table of documents for queries.sql.
-- SPDX-License-Identifier: MIT
CREATE TABLE document AS
SELECT n AS id, n * 48271 % 2003 AS owner,
       md5(n::text) || repeat(md5((n * 7)::text), n % 9) AS text,
       jsonb_build_object('n', n, 'tags', jsonb_build_array(n % 7, 'tag ' || n % 31, md5(n::text)),
                          'deep', jsonb_build_object('price', (n * 7919 % 99991) / 100.0)) AS body
FROM generate_series(1, 30000) AS n;
ANALYZE document;
CHECKPOINT;

-- orders.sql - orders made, indexed, queried, changed and checked in memory; @ROWS@ orders.
-- SPDX-License-Identifier: MIT
-- A database in memory keeps its pages in blocks of malloc; statements and rows are small blocks.
PRAGMA temp_store = memory;
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, at INTEGER, text TEXT, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO customer SELECT i, printf('name %d', i * 7919 % 3001), 'city ' || (i % 97) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @ROWS@)
INSERT INTO orders
SELECT i, 1 + i * 48271 % 3000, i * 16807 % 1000003,
       substr('the prairie is wide and the grass is high ', 1 + i % 20) || hex(i * 69621 % 65537),
       (i * 7919 % 99991) / 100.0 FROM n;
CREATE INDEX orders_at ON orders(at);
CREATE INDEX orders_text ON orders(customer, text);
SELECT city, count(*), round(sum(price), 2), max(text) FROM orders
JOIN customer ON customer = customer.id GROUP BY city ORDER BY 3 DESC LIMIT 5;
SELECT length(group_concat(text, ',')), count(DISTINCT substr(text, -3))
FROM orders WHERE at % 3 = 0;
SELECT customer, count(*) FROM orders WHERE text LIKE '%grass%7' GROUP BY customer
ORDER BY 2 DESC, 1 LIMIT 3;
UPDATE orders SET text = text || printf('%*s', id % 300, 'x') WHERE id % 5 = 0;
DELETE FROM orders WHERE at < 400000;
CREATE TABLE document AS
SELECT customer, json_group_array(json_object('id', id, 'price', price, 'text', text)) AS body
FROM orders GROUP BY customer;
SELECT sum(json_extract(body, '$[0].price')), sum(json_array_length(body)), max(length(body))
FROM document;
INSERT INTO orders SELECT NULL, customer, at + 7, upper(text), price * 2 FROM orders WHERE id % 2;
SELECT a.at, a.id, b.id FROM orders a JOIN orders b ON a.at = b.at AND a.id < b.id
ORDER BY 1, 2, 3 LIMIT 3;
SELECT count(*), sum(length(text)), min(at), round(total(price), 1) FROM orders;
VACUUM;
PRAGMA integrity_check;

-- orders.sql - a database of customers and orders; @ROWS@ is the number of orders.
-- SPDX-License-Identifier: MIT
-- Numbers come from a linear congruential generator over the row number: nothing is random.
PRAGMA page_size = 4096;
PRAGMA cache_size = -65536;
PRAGMA temp_store = MEMORY;
PRAGMA journal_mode = MEMORY;
PRAGMA synchronous = OFF;

CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, notes TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, at INTEGER NOT NULL,
                    price REAL, goods TEXT, remark TEXT);

BEGIN;
WITH RECURSIVE n(i, r) AS (
  SELECT 1, 12345 UNION ALL SELECT i + 1, (r * 1103515245 + 12345) % 2147483648 FROM n WHERE i < @ROWS@ / 20)
INSERT INTO customers
  SELECT i, printf('%s-%d', substr('AnnaBertaCarlaDoraEmmaFrida', 1 + r % 20, 4 + r / 32 % 5), r),
         printf('city %03d', r / 7 % 500), substr(hex(r) || hex(r * 7) || hex(r * 13), 1, r % 60) FROM n;
WITH RECURSIVE n(i, r) AS (
  SELECT 1, 54321 UNION ALL SELECT i + 1, (r * 1103515245 + 12345) % 2147483648 FROM n WHERE i < @ROWS@)
INSERT INTO orders
  SELECT i, 1 + r / 16 % (@ROWS@ / 20), 1600000000 + i * 37, (r % 100000) / 100.0,
         json_array(printf('item-%d', r % 977), printf('item-%d', r / 8 % 977), r % 7),
         printf('%.*c %s', r / 64 % 80, 'x', hex(r * 31)) FROM n;
COMMIT;

CREATE INDEX orders_customer ON orders(customer, at);
CREATE INDEX orders_remark ON orders(remark);
CREATE INDEX customers_name ON customers(name);

SELECT 'rows', count(*), sum(length(remark)), round(total(price), 2) FROM orders;
SELECT city, count(*), round(sum(price), 2), max(remark) FROM orders
  JOIN customers ON customers.id = customer GROUP BY city ORDER BY city;
SELECT json_extract(goods, '$[0]') AS item, count(*), round(avg(price), 4) FROM orders
  GROUP BY item ORDER BY 2 DESC, 1 LIMIT 40;
SELECT value, count(*) FROM orders, json_each(goods) WHERE orders.id % 10 = 3
  GROUP BY value ORDER BY 2 DESC, 1 LIMIT 20;
SELECT customer, length(group_concat(remark, ';')), length(group_concat(upper(goods))) FROM orders
  GROUP BY customer HAVING customer % 97 = 0 ORDER BY customer;
SELECT id, price, rank() OVER (PARTITION BY customer ORDER BY price DESC, id),
       sum(price) OVER (PARTITION BY customer ORDER BY at) FROM orders WHERE customer % 501 = 7
  ORDER BY id LIMIT 2000;
SELECT count(DISTINCT substr(remark, 1, 30) || price) FROM orders;
SELECT count(*) FROM orders WHERE remark LIKE '%xx A%' OR remark GLOB '*9E[0-9]*';

UPDATE orders SET remark = replace(remark, 'x', 'yz'), price = price * 1.07 WHERE id % 3 = 0;
DELETE FROM orders WHERE customer % 11 = 5;
UPDATE customers SET notes = (SELECT group_concat(id) FROM orders WHERE customer = customers.id)
  WHERE id % 5 = 1;
CREATE TABLE summary AS SELECT customer, count(*) AS n, sum(price) AS total FROM orders GROUP BY customer;
SELECT count(*), sum(length(notes)) FROM customers;
SELECT 'last', max(total), min(n) FROM summary;
VACUUM;
PRAGMA integrity_check;
SELECT 'integrity: ' || integrity_check FROM pragma_integrity_check;

-- Grafana 12, its PostgreSQL data source: test the connection, fill the query builder, draw a panel
--
SELECT 1
-- version
SELECT current_setting('server_version_num')::int/100 AS version
--
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'
-- schemas
SELECT schema_name AS "name" FROM information_schema.schemata
WHERE schema_name NOT IN ('information_schema', 'pg_catalog', 'pg_toast', '_timescaledb_cache')
ORDER BY schema_name
-- tables
SELECT
  CASE WHEN quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(
      array_lower(string_to_array(current_setting('search_path'),','),1),
      array_upper(string_to_array(current_setting('search_path'),','),1)
    ) as i, string_to_array(current_setting('search_path'),',') s)
  THEN quote_ident(table_name)
  ELSE quote_ident(table_schema) || '.' || quote_ident(table_name)
  END AS "table"
FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache')
ORDER BY CASE WHEN quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(
      array_lower(string_to_array(current_setting('search_path'),','),1),
      array_upper(string_to_array(current_setting('search_path'),','),1)
    ) as i, string_to_array(current_setting('search_path'),',') s)
  THEN 0 ELSE 1 END, 1
-- tables
SELECT quote_ident(table_name) AS "table" FROM information_schema.tables
WHERE quote_ident(table_schema) = 'public' ORDER BY 1
-- columns
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE
  CASE WHEN array_length(parse_ident('{table}'),1) = 2
  THEN quote_ident(table_schema) = (parse_ident('{table}'))[1]
    AND quote_ident(table_name) = (parse_ident('{table}'))[2]
  ELSE quote_ident(table_name) = '{table}' AND quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(
      array_lower(string_to_array(current_setting('search_path'),','),1),
      array_upper(string_to_array(current_setting('search_path'),','),1)
    ) as i, string_to_array(current_setting('search_path'),',') s)
  END
-- columns
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE
  CASE WHEN array_length(parse_ident('public.{table}'),1) = 2
  THEN quote_ident(table_schema) = (parse_ident('public.{table}'))[1]
    AND quote_ident(table_name) = (parse_ident('public.{table}'))[2]
  ELSE quote_ident(table_name) = 'public.{table}' AND quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(
      array_lower(string_to_array(current_setting('search_path'),','),1),
      array_upper(string_to_array(current_setting('search_path'),','),1)
    ) as i, string_to_array(current_setting('search_path'),',') s)
  END
-- rows
SELECT at AS "time", symbol AS metric, price AS value FROM {table}
WHERE at BETWEEN '2024-01-31T00:00:00Z' AND '2024-01-31T23:59:59.999Z' ORDER BY 1
-- buckets
SELECT floor(extract(epoch from at)/60)*60 AS "time", symbol, avg(price) AS "price" FROM {table}
WHERE at BETWEEN '2024-01-31T00:00:00Z' AND '2024-01-31T23:59:59.999Z'
GROUP BY 1, symbol ORDER BY 1
-- rows
SELECT extract(epoch from at) as "time", ratio FROM {table}
WHERE extract(epoch from at) >= 1706659200 AND extract(epoch from at) <= 1706745599
-- values
SELECT DISTINCT symbol FROM {table} ORDER BY 1

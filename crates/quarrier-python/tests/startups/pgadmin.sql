-- pgAdmin 9 through psycopg: connect, open the tree down to a table's columns, view its data
--
SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='UTF8';
-- version
SELECT version()
-- databases
SELECT db.oid AS did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
  has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = current_database()
--
SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_backend_pid()
-- user
SELECT roles.oid AS id, roles.rolname AS name, roles.rolsuper AS is_superuser,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END AS can_create_role,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END AS can_create_db,
  CASE WHEN 'pg_signal_backend' = ANY(ARRAY(WITH RECURSIVE cte AS (
    SELECT pg_roles.oid, pg_roles.rolname FROM pg_catalog.pg_roles WHERE pg_roles.oid = roles.oid
    UNION ALL
    SELECT m.roleid, pgr.rolname FROM cte cte_1
    JOIN pg_catalog.pg_auth_members m ON m.member = cte_1.oid
    JOIN pg_catalog.pg_roles pgr ON pgr.oid = m.roleid)
  SELECT rolname FROM cte)) THEN True ELSE False END AS can_signal_backend
FROM pg_catalog.pg_roles AS roles WHERE rolname = current_user
--
SELECT CASE WHEN usesuper THEN pg_catalog.pg_is_in_recovery() ELSE FALSE END AS inrecovery,
  CASE WHEN usesuper AND pg_catalog.pg_is_in_recovery() THEN pg_is_wal_replay_paused()
  ELSE FALSE END AS isreplaypaused
FROM pg_catalog.pg_user WHERE usename = current_user
--
SELECT CASE
  WHEN (SELECT count(extname) FROM pg_catalog.pg_extension WHERE extname = 'bdr') > 0 THEN 'pgd'
  WHEN (SELECT COUNT(*) FROM pg_catalog.pg_replication_slots) > 0 THEN 'log'
  ELSE NULL END AS type;
-- databases
SELECT db.oid AS did, db.datname AS name, ta.spcname AS spcname, db.datallowconn,
  db.datistemplate AS is_template, pg_catalog.has_database_privilege(db.oid, 'CREATE') AS cancreate,
  datdba AS owner, descr.description
FROM pg_catalog.pg_database db
LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.oid
LEFT OUTER JOIN pg_catalog.pg_shdescription descr
  ON (db.oid = descr.objoid AND descr.classoid = 'pg_database'::regclass)
WHERE db.oid > 16383::OID OR db.datname IN ('postgres', 'edb')
ORDER BY datname;
-- databases
SELECT db.oid AS did, db.oid, db.datname AS name, db.dattablespace AS spcoid, spcname, datallowconn,
  pg_catalog.pg_encoding_to_char(encoding) AS encoding,
  pg_catalog.pg_get_userbyid(datdba) AS datowner,
  (select pg_catalog.current_setting('lc_collate')) AS datcollate,
  (select pg_catalog.current_setting('lc_ctype')) AS datctype,
  CASE WHEN datlocprovider = 'i' THEN 'icu' ELSE 'libc' END datlocaleprovider,
  daticulocale, datcollversion, datconnlimit,
  pg_catalog.has_database_privilege(db.oid, 'CREATE') AS cancreate,
  pg_catalog.current_setting('default_tablespace') AS default_tablespace,
  descr.description AS comments, db.datistemplate AS is_template,
  '' AS tblacl, '' AS seqacl, '' AS funcacl,
  pg_catalog.array_to_string(datacl::text[], ', ') AS acl
FROM pg_catalog.pg_database db
LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.OID
LEFT OUTER JOIN pg_catalog.pg_shdescription descr
  ON (db.oid = descr.objoid AND descr.classoid = 'pg_database'::regclass)
WHERE db.oid = '16384'::OID
ORDER BY datname;
--
SELECT rl.*, r.rolname AS user_name, db.datname AS db_name
FROM pg_catalog.pg_db_role_setting AS rl
LEFT JOIN pg_catalog.pg_roles AS r ON rl.setrole = r.oid
LEFT JOIN pg_catalog.pg_database AS db ON rl.setdatabase = db.oid
WHERE setdatabase = 16384
--
SELECT r.oid, r.rolname, r.rolcanlogin, r.rolsuper, d.description
FROM pg_catalog.pg_roles r LEFT JOIN pg_catalog.pg_shdescription d
ON d.objoid = r.oid AND d.classoid = 'pg_catalog.pg_authid'::regclass
ORDER BY r.rolcanlogin, r.rolname
--
SELECT ts.oid AS oid, spcname AS name, spcowner AS owner,
  pg_catalog.shobj_description(oid, 'pg_tablespace') AS description
FROM pg_catalog.pg_tablespace ts ORDER BY name;
-- schemas
SELECT nsp.oid, nsp.nspname AS name,
  pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') AS can_create,
  pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') AS has_usage, des.description
FROM pg_catalog.pg_namespace nsp
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass)
WHERE nspname NOT LIKE E'pg\\_%' AND NOT (
  (nsp.nspname = 'pg_catalog' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1))
  OR (nsp.nspname = 'pgagent' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pga_job' AND relnamespace = nsp.oid LIMIT 1))
  OR (nsp.nspname = 'information_schema' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'tables' AND relnamespace = nsp.oid LIMIT 1)))
ORDER BY nspname;
--
SELECT nsp.oid, CASE nsp.nspname
    WHEN 'pg_catalog' THEN 'PostgreSQL Catalog (pg_catalog)'
    WHEN 'information_schema' THEN 'ANSI (information_schema)' ELSE nsp.nspname END AS name,
  pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') AS can_create, des.description
FROM pg_catalog.pg_namespace nsp
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass)
WHERE (
  (nsp.nspname = 'pg_catalog' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1))
  OR (nsp.nspname = 'information_schema' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'tables' AND relnamespace = nsp.oid LIMIT 1)))
ORDER BY 2;
-- schemas
SELECT CASE WHEN (nspname LIKE E'pg\\_temp\\_%') THEN 1 WHEN (nspname LIKE E'pg\\_%') THEN 0
    ELSE 3 END AS nsptyp,
  nsp.nspname AS name, nsp.oid, pg_catalog.array_to_string(nsp.nspacl::text[], ', ') AS acl,
  r.rolname AS namespaceowner, description,
  pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') AS can_create,
  (SELECT pg_catalog.array_to_string(ARRAY(
    SELECT pg_catalog.array_to_string(defaclacl::text[], ', ') FROM pg_catalog.pg_default_acl
    WHERE defaclobjtype = 'r' AND defaclnamespace = nsp.oid), ', ')) AS tblacl,
  (SELECT pg_catalog.array_agg(provider || '=' || label) FROM pg_catalog.pg_seclabels sl1
    WHERE sl1.objoid = nsp.oid) AS seclabels
FROM pg_catalog.pg_namespace nsp
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass)
LEFT JOIN pg_catalog.pg_roles r ON (r.oid = nsp.nspowner)
WHERE nsp.oid = {schema}::oid AND NOT (
  (nsp.nspname = 'pg_catalog' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1)))
ORDER BY 1, nspname;
--
SELECT nsp.nspname AS schema_name,
  (nsp.nspname = 'pg_catalog' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1))
    AS is_catalog,
  CASE WHEN nsp.nspname = ANY('{information_schema}') THEN false ELSE true END AS db_support
FROM pg_catalog.pg_namespace nsp WHERE nsp.oid = '{schema}'::OID;
--
SELECT CASE WHEN nsp.nspname IN ('sys', 'information_schema') THEN true ELSE false END AS dbSupport
FROM pg_catalog.pg_namespace nsp
WHERE nsp.oid = {schema}::oid AND (
  (nspname = 'pg_catalog' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1))
  OR (nspname LIKE '_%' AND EXISTS
    (SELECT 1 FROM pg_catalog.pg_proc WHERE proname = 'slonyversion' AND pronamespace = nsp.oid LIMIT 1)))
AND nspname NOT LIKE E'pg\\temp\\%' AND nspname NOT LIKE E'pg\\toast_temp\\%'
--
SELECT COUNT(*) FROM pg_catalog.pg_class rel
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = {schema}::oid AND NOT rel.relispartition;
-- tables
SELECT rel.oid, rel.relname AS name,
  (SELECT count(*) FROM pg_catalog.pg_trigger
    WHERE tgrelid = rel.oid AND tgisinternal = FALSE) AS triggercount,
  (SELECT count(*) FROM pg_catalog.pg_trigger
    WHERE tgrelid = rel.oid AND tgisinternal = FALSE AND tgenabled = 'O') AS has_enable_triggers,
  (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
  (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) AS is_inherits,
  (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhparent = rel.oid LIMIT 1) AS is_inherited,
  des.description
FROM pg_catalog.pg_class rel
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = rel.oid AND des.objsubid = 0 AND des.classoid = 'pg_class'::regclass)
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = {schema}::oid
AND NOT rel.relispartition
ORDER BY rel.relname;
-- tables
SELECT rel.oid, rel.relname AS name, rel.reltablespace AS spcoid, rel.relacl AS relacl_str,
  (CASE WHEN length(spc.spcname::text) > 0 OR rel.relkind = 'p' THEN spc.spcname ELSE
    (SELECT sp.spcname FROM pg_catalog.pg_database dtb
    JOIN pg_catalog.pg_tablespace sp ON dtb.dattablespace = sp.oid
    WHERE dtb.oid = 16384::oid) END) AS spcname,
  (CASE rel.relreplident WHEN 'd' THEN 'default' WHEN 'n' THEN 'nothing' END) AS replica_identity,
  (select nspname FROM pg_catalog.pg_namespace WHERE oid = {schema}::oid) AS schema,
  pg_catalog.pg_get_userbyid(rel.relowner) AS relowner, rel.relkind,
  rel.relhassubclass, rel.reltuples::bigint, des.description, con.conname, con.conkey,
  EXISTS(select 1 FROM pg_catalog.pg_trigger
    JOIN pg_catalog.pg_proc pt ON pt.oid = tgfoid AND pt.proname = 'logtrigger'
    JOIN pg_catalog.pg_proc pc ON pc.pronamespace = pt.pronamespace AND pc.proname = 'slonyversion'
    WHERE tgrelid = rel.oid) AS isrepl,
  (SELECT count(*) FROM pg_catalog.pg_trigger
    WHERE tgrelid = rel.oid AND tgisinternal = FALSE) AS triggercount,
  (SELECT ARRAY(SELECT CASE WHEN (nspname NOT LIKE 'pg\_%') THEN
      pg_catalog.quote_ident(nspname)||'.'||pg_catalog.quote_ident(c.relname)
      ELSE pg_catalog.quote_ident(c.relname) END AS inherited_tables
    FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE i.inhrelid = rel.oid ORDER BY inhseqno)) AS coll_inherits,
  (SELECT count(*) FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE i.inhrelid = rel.oid) AS inherited_tables_cnt,
  (CASE WHEN rel.relpersistence = 'u' THEN true ELSE false END) AS relpersistence,
  (SELECT st.setting from pg_catalog.pg_show_all_settings() st
    WHERE st.name = 'default_table_access_method') AS default_amname,
  substring(pg_catalog.array_to_string(rel.reloptions, ',') FROM 'fillfactor=([0-9]*)') AS fillfactor,
  (substring(pg_catalog.array_to_string(rel.reloptions, ',')
    FROM 'autovacuum_enabled=([a-z|0-9]*)'))::BOOL AS autovacuum_enabled,
  substring(pg_catalog.array_to_string(tst.reloptions, ',')
    FROM 'autovacuum_vacuum_threshold=([0-9]*)') AS toast_autovacuum_vacuum_threshold,
  rel.reloptions AS reloptions, tst.reloptions AS toast_reloptions, rel.reloftype, am.amname,
  CASE WHEN typ.typname IS NOT NULL THEN (select pg_catalog.quote_ident(nspname)
    FROM pg_catalog.pg_namespace WHERE oid = {schema}::oid)||'.'||pg_catalog.quote_ident(typ.typname)
    ELSE typ.typname END AS typname,
  typ.typrelid AS typoid, rel.relrowsecurity AS rlspolicy, rel.relforcerowsecurity AS forcerlspolicy,
  (CASE WHEN rel.reltoastrelid = 0 THEN false ELSE true END) AS hastoasttable,
  (SELECT pg_catalog.array_agg(provider || '=' || label) FROM pg_catalog.pg_seclabels sl1
    WHERE sl1.objoid = rel.oid AND sl1.objsubid = 0) AS seclabels,
  (CASE WHEN rel.oid <= 0::oid THEN true ElSE false END) AS is_sys_table
  -- Added for partition table
  , (CASE WHEN rel.relkind = 'p' THEN pg_catalog.pg_get_partkeydef({oid}::oid) ELSE '' END)
    AS partition_scheme
FROM pg_catalog.pg_class rel
LEFT OUTER JOIN pg_catalog.pg_tablespace spc on spc.oid = rel.reltablespace
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = rel.oid AND des.objsubid = 0 AND des.classoid = 'pg_class'::regclass)
LEFT OUTER JOIN pg_catalog.pg_constraint con ON con.conrelid = rel.oid AND con.contype = 'p'
LEFT OUTER JOIN pg_catalog.pg_class tst ON tst.oid = rel.reltoastrelid
LEFT JOIN pg_catalog.pg_type typ ON rel.reloftype = typ.oid
LEFT OUTER JOIN pg_catalog.pg_am am ON am.oid = rel.relam
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = {schema}::oid
AND NOT rel.relispartition AND rel.oid = {oid}::oid
ORDER BY rel.relname;
--
SELECT name, setting::numeric AS setting FROM pg_catalog.pg_show_all_settings()
WHERE name IN('autovacuum_vacuum_threshold', 'autovacuum_freeze_min_age') ORDER BY name
--
SELECT nsp.nspname AS schema, rel.relname AS table
FROM pg_catalog.pg_class rel JOIN pg_catalog.pg_namespace nsp ON rel.relnamespace = nsp.oid::oid
WHERE rel.oid = {oid}::oid
-- columns
SELECT DISTINCT att.attname AS name, att.attnum AS OID,
  pg_catalog.format_type(ty.oid, NULL) AS datatype,
  pg_catalog.format_type(ty.oid, att.atttypmod) AS displaytypname, att.attnotnull AS not_null,
  CASE WHEN att.atthasdef OR att.attidentity != '' OR ty.typdefault IS NOT NULL THEN True
  ELSE False END AS has_default_val, des.description, seq.seqtypid
FROM pg_catalog.pg_attribute att
JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
JOIN pg_catalog.pg_namespace tn ON tn.oid = ty.typnamespace
JOIN pg_catalog.pg_class cl ON cl.oid = att.attrelid
JOIN pg_catalog.pg_namespace na ON na.oid = cl.relnamespace
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = ty.typelem
LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid = att.attrelid AND adnum = att.attnum
LEFT OUTER JOIN (pg_catalog.pg_depend JOIN pg_catalog.pg_class cs
  ON classid = 'pg_class'::regclass AND objid = cs.oid AND cs.relkind = 'S')
  ON refobjid = att.attrelid AND refobjsubid = att.attnum
LEFT OUTER JOIN pg_catalog.pg_namespace ns ON ns.oid = cs.relnamespace
LEFT OUTER JOIN pg_catalog.pg_index pi ON pi.indrelid = att.attrelid AND indisprimary
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = att.attrelid AND des.objsubid = att.attnum AND des.classoid = 'pg_class'::regclass)
LEFT OUTER JOIN pg_catalog.pg_sequence seq ON cs.oid = seq.seqrelid
WHERE att.attrelid = '{oid}'::oid AND att.attnum > 0 AND att.attisdropped IS FALSE
ORDER BY att.attnum
-- columns
WITH INH_TABLES AS (
  SELECT at.attname AS name, ph.inhparent AS inheritedid, ph.inhseqno,
    pg_catalog.concat(nmsp_parent.nspname, '.', parent.relname) AS inheritedfrom
  FROM pg_catalog.pg_attribute at
  JOIN pg_catalog.pg_inherits ph ON ph.inhparent = at.attrelid AND ph.inhrelid = {oid}::oid
  JOIN pg_catalog.pg_class parent ON ph.inhparent = parent.oid
  JOIN pg_catalog.pg_namespace nmsp_parent ON nmsp_parent.oid = parent.relnamespace
  GROUP BY at.attname, ph.inhparent, ph.inhseqno, inheritedfrom
  ORDER BY at.attname, ph.inhparent, ph.inhseqno, inheritedfrom)
SELECT DISTINCT ON (att.attnum) att.attname AS name, att.atttypid, att.attlen, att.attnum,
  att.attndims, att.atttypmod, att.attacl, att.attnotnull, att.attoptions, att.attfdwoptions,
  att.attstattarget, att.attstorage, att.attidentity,
  pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS defval,
  pg_catalog.format_type(ty.oid, NULL) AS typname,
  pg_catalog.format_type(ty.oid, att.atttypmod) AS displaytypname,
  inh.inheritedfrom, inh.inheritedid,
  CASE WHEN ty.typelem > 0 THEN ty.typelem ELSE ty.oid END AS elemoid,
  (SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = ty.typnamespace) AS typnspname,
  ty.typstorage AS defaultstorage, description, pi.indkey,
  (SELECT count(1) FROM pg_catalog.pg_type t2 WHERE t2.typname = ty.typname) > 1 AS isdup,
  CASE WHEN length(coll.collname::text) > 0 AND length(nspc.nspname::text) > 0 THEN
    pg_catalog.concat(pg_catalog.quote_ident(nspc.nspname),'.',pg_catalog.quote_ident(coll.collname))
  ELSE '' END AS collspcname,
  EXISTS(SELECT 1 FROM pg_catalog.pg_constraint
    WHERE conrelid = att.attrelid AND contype = 'f' AND att.attnum = ANY(conkey)) AS is_fk,
  (SELECT pg_catalog.array_agg(provider || '=' || label) FROM pg_catalog.pg_seclabels sl1
    WHERE sl1.objoid = att.attrelid AND sl1.objsubid = att.attnum) AS seclabels,
  (CASE WHEN (att.attnum < 1) THEN true ElSE false END) AS is_sys_column,
  (CASE WHEN (att.attidentity in ('a', 'd')) THEN 'i' WHEN (att.attgenerated in ('s')) THEN 'g'
    ELSE 'n' END) AS colconstype,
  (CASE WHEN (att.attgenerated in ('s')) THEN pg_catalog.pg_get_expr(def.adbin, def.adrelid) END)
    AS genexpr, tab.relname AS relname,
  (CASE WHEN tab.relkind = 'v' THEN true ELSE false END) AS is_view_only,
  (CASE WHEN att.attcompression = 'p' THEN 'pglz' WHEN att.attcompression = 'l' THEN 'lz4' END)
    AS attcompression,
  (SELECT dsd.refobjid FROM pg_catalog.pg_depend dsd
    JOIN pg_catalog.pg_class dsc ON dsd.refclassid = 'pg_catalog.pg_class'::regclass
      AND dsd.refobjid = dsc.oid AND dsc.relkind = 'S'
    WHERE dsd.classid = 'pg_catalog.pg_attrdef'::regclass AND dsd.objid = def.oid AND dsd.deptype = 'n'
    ORDER BY dsd.refobjid LIMIT 1) AS defseqrelid,
  seq.*
FROM pg_catalog.pg_attribute att
JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid = att.attrelid AND adnum = att.attnum
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = att.attrelid AND des.objsubid = att.attnum AND des.classoid = 'pg_class'::regclass)
LEFT OUTER JOIN (pg_catalog.pg_depend dep JOIN pg_catalog.pg_class cs
  ON dep.classid = 'pg_class'::regclass AND dep.objid = cs.oid AND cs.relkind = 'S')
  ON dep.refobjid = att.attrelid AND dep.refobjsubid = att.attnum
LEFT OUTER JOIN pg_catalog.pg_index pi ON pi.indrelid = att.attrelid AND indisprimary
LEFT OUTER JOIN pg_catalog.pg_collation coll ON att.attcollation = coll.oid
LEFT OUTER JOIN pg_catalog.pg_namespace nspc ON coll.collnamespace = nspc.oid
LEFT OUTER JOIN pg_catalog.pg_sequence seq ON cs.oid = seq.seqrelid
LEFT OUTER JOIN pg_catalog.pg_class tab on tab.oid = att.attrelid
LEFT OUTER JOIN INH_TABLES AS INH ON att.attname = INH.name
WHERE att.attrelid = {oid}::oid AND att.attnum > 0 AND att.attisdropped IS FALSE
ORDER BY att.attnum;
--
SELECT rel.relhasoids AS has_oids FROM pg_catalog.pg_class rel WHERE rel.oid = {oid}::oid
--
SELECT at.attname, at.attnum, ty.typname
FROM pg_catalog.pg_attribute at LEFT JOIN pg_catalog.pg_type ty ON (ty.oid = at.atttypid)
JOIN pg_catalog.pg_class AS cl ON cl.oid = AT.attrelid
JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cl.relnamespace
WHERE attrelid = {oid}::oid AND attnum = ANY (
  (SELECT con.conkey FROM pg_catalog.pg_class rel
  LEFT OUTER JOIN pg_catalog.pg_constraint con ON con.conrelid = rel.oid
  JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = REL.relnamespace AND con.contype = 'p'
  WHERE rel.relkind IN ('r','s','t', 'p') AND rel.oid = ({oid})::oid)::oid[])
-- attributes
SELECT at.attname, ty.typname, at.attnum FROM pg_catalog.pg_attribute at
LEFT JOIN pg_catalog.pg_type ty ON (ty.oid = at.atttypid)
JOIN pg_catalog.pg_class AS cl ON cl.oid = at.attrelid
JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cl.relnamespace
WHERE attrelid = {oid}::oid AND at.attnum > 0 AND at.attisdropped = FALSE
--
BEGIN;
-- rows
SELECT * FROM public.{table} LIMIT 1000
--
SELECT COUNT(*)::text FROM public.{table};
--
ROLLBACK;

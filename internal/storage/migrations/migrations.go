// Package migrations holds the schema of the transactional store, once for
// each engine, as numbered files that are never changed after a release. The
// files of one number bring both engines to the same tables and columns. The
// package runs nothing; sqldb does.
package migrations

import "embed"

// Files holds one folder per engine, "sqlite" and "postgres", each with the
// same names NNNN_name.sql, numbered from 1 without gaps.
//
//go:embed sqlite/*.sql postgres/*.sql
var Files embed.FS

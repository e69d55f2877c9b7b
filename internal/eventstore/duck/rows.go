package duck

import (
	"context"
	"encoding/binary"
	"unsafe"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Rows is the result of a query, read row by row. The accessors take the
// column's number, from 0, and demand a column of exactly their type; text
// and bytes are copied, so they outlive the row.
type Rows struct {
	conn    *Conn
	ctx     context.Context //nolint:containedctx // that of the query, for as long as its rows are read
	stmt    bindings.PreparedStatement
	result  bindings.Result
	chunk   bindings.DataChunk
	columns []column
	row     int
	size    int
	err     error
}

type column struct {
	data     unsafe.Pointer
	validity unsafe.Pointer // nil: no value is NULL
}

// Next moves to the next row and reports whether there is one. After false,
// Err says whether that was the end.
func (r *Rows) Next() bool {
	r.row++
	for r.row >= r.size {
		if r.err != nil || !r.fetch() {
			return false
		}
	}
	return true
}

func (r *Rows) fetch() bool {
	bindings.DestroyDataChunk(&r.chunk)
	r.row, r.size = 0, 0
	r.err = r.conn.interruptible(r.ctx, func() error {
		r.chunk = bindings.FetchChunk(r.result)
		if r.chunk.Ptr == nil && bindings.ResultError(&r.result) != "" {
			return r.failure()
		}
		return nil
	})
	if r.err != nil || r.chunk.Ptr == nil {
		return false
	}
	r.size = int(bindings.DataChunkGetSize(r.chunk))
	for i := range r.columns {
		vector := bindings.DataChunkGetVector(r.chunk, bindings.IdxT(i))
		r.columns[i] = column{
			data:     bindings.VectorGetData(vector),
			validity: bindings.VectorGetValidity(vector),
		}
	}
	return r.size > 0
}

// Err returns what ended the rows early, or nil.
func (r *Rows) Err() error { return r.err }

// Close releases the result and returns what Err does.
func (r *Rows) Close() error {
	bindings.DestroyDataChunk(&r.chunk)
	bindings.DestroyResult(&r.result)
	bindings.DestroyPrepare(&r.stmt)
	return r.err
}

// Null reports whether the value is NULL.
func (r *Rows) Null(col int) bool {
	mask := r.columns[col].validity
	if mask == nil {
		return false
	}
	word := *(*uint64)(unsafe.Add(mask, r.row/64*8))
	return word&(1<<(r.row%64)) == 0
}

// Int64 returns a BIGINT.
func (r *Rows) Int64(col int) int64 { return at[int64](r, col) }

// Uint32 returns a UINTEGER.
func (r *Rows) Uint32(col int) uint32 { return at[uint32](r, col) }

// Uint8 returns a UTINYINT.
func (r *Rows) Uint8(col int) uint8 { return at[uint8](r, col) }

// Bool returns a BOOLEAN.
func (r *Rows) Bool(col int) bool { return at[bool](r, col) }

// Text returns a VARCHAR, or "" for NULL.
func (r *Rows) Text(col int) string { return string(r.Bytes(col)) }

// Bytes returns a BLOB or VARCHAR, or nil for NULL.
func (r *Rows) Bytes(col int) []byte {
	if r.Null(col) {
		return nil
	}
	cell := unsafe.Add(r.columns[col].data, r.row*stringSize)
	size := *(*uint32)(cell)
	data := unsafe.Add(cell, 4)
	if size > inlineSize {
		data = *(*unsafe.Pointer)(unsafe.Add(cell, 8))
	}
	return append(make([]byte, 0, size), unsafe.Slice((*byte)(data), size)...)
}

// UUID returns the 16 bytes of a UUID.
func (r *Rows) UUID(col int) [16]byte {
	v := at[hugeint](r, col)
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], v.upper^uuidSign)
	binary.BigEndian.PutUint64(id[8:], v.lower)
	return id
}

func at[T any](r *Rows, col int) T {
	var zero T
	return *(*T)(unsafe.Add(r.columns[col].data, uintptr(r.row)*unsafe.Sizeof(zero)))
}

func (r *Rows) failure() error {
	return &Error{Type: bindings.ResultErrorType(&r.result), Message: bindings.ResultError(&r.result)}
}

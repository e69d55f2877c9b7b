package duck

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unicode/utf8"
	"unsafe"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// DuckDB's own layouts: a string is its length and then either up to twelve
// bytes in place or a four-byte prefix and a pointer; a UUID is a hugeint
// whose top bit is flipped so that it sorts as unsigned.
const (
	stringSize = 16
	inlineSize = 12
	prefixSize = 4
	uuidSign   = 1 << 63
	blockSize  = 1 << 18
)

type hugeint struct{ lower, upper uint64 }

// Appender adds rows to one table inside the connection's transaction. Values
// are written straight into DuckDB's columns: set every column of a row, then
// call EndRow; Flush hands the rows to the table. A setter must match its
// column's type, which NewAppender has checked against types.
type Appender struct {
	handle  bindings.Appender
	chunk   bindings.DataChunk
	types   []bindings.LogicalType
	columns []column
	row     int
	bad     error
	// Long strings of the current chunk live in blocks of Go memory that are
	// pinned, since DuckDB's columns point to them until the chunk is appended.
	pinner runtime.Pinner
	blocks [][]byte
	used   int // blocks in use
	free   []byte
}

// Table names a table to append to; an empty Catalog is the database's own.
type Table struct{ Catalog, Name string }

// The column types an appender can write.
const (
	Int64  = bindings.TypeBigInt
	Uint32 = bindings.TypeUInteger
	Uint8  = bindings.TypeUTinyInt
	Bool   = bindings.TypeBoolean
	Text   = bindings.TypeVarchar
	Blob   = bindings.TypeBlob
	UUID   = bindings.TypeUUID
)

// NewAppender returns an appender for a table whose columns have exactly the
// given types. The caller must close it.
func (c *Conn) NewAppender(table Table, types ...bindings.Type) (*Appender, error) {
	a := &Appender{}
	if bindings.AppenderCreateExt(c.handle, table.Catalog, "main", table.Name, &a.handle) == bindings.StateError {
		err := a.failure()
		bindings.AppenderDestroy(&a.handle)
		return nil, fmt.Errorf("append to %s: %w", table.Name, err)
	}
	count := int(bindings.AppenderColumnCount(a.handle))
	if count != len(types) {
		a.Close()
		return nil, fmt.Errorf("append to %s: %d columns, want %d", table.Name, count, len(types))
	}
	for i := range types {
		t := bindings.AppenderColumnType(a.handle, bindings.IdxT(i))
		a.types = append(a.types, t)
		if got := bindings.GetTypeId(t); got != types[i] {
			a.Close()
			return nil, fmt.Errorf("append to %s: column %d has type %d, want %d", table.Name, i, got, types[i])
		}
	}
	a.chunk = bindings.CreateDataChunk(a.types)
	a.columns = make([]column, count)
	a.begin()
	return a, nil
}

// begin prepares the empty chunk for writing.
func (a *Appender) begin() {
	for i := range a.columns {
		vector := bindings.DataChunkGetVector(a.chunk, bindings.IdxT(i))
		bindings.VectorEnsureValidityWritable(vector)
		a.columns[i] = column{
			data:     bindings.VectorGetData(vector),
			validity: bindings.VectorGetValidity(vector),
		}
	}
	a.row, a.used, a.free = 0, 0, nil
}

// Null sets NULL.
func (a *Appender) Null(col int) {
	word := (*uint64)(unsafe.Add(a.columns[col].validity, a.row/64*8))
	*word &^= 1 << (a.row % 64)
}

// Int64 sets a BIGINT.
func (a *Appender) Int64(col int, v int64) { set(a, col, v) }

// Uint32 sets a UINTEGER.
func (a *Appender) Uint32(col int, v uint32) { set(a, col, v) }

// Uint8 sets a UTINYINT.
func (a *Appender) Uint8(col int, v uint8) { set(a, col, v) }

// Bool sets a BOOLEAN.
func (a *Appender) Bool(col int, v bool) { set(a, col, v) }

// UUID sets a UUID.
func (a *Appender) UUID(col int, id [16]byte) {
	set(a, col, hugeint{
		lower: binary.BigEndian.Uint64(id[8:]),
		upper: binary.BigEndian.Uint64(id[:8]) ^ uuidSign,
	})
}

// Text sets a VARCHAR. Text that is not UTF-8 makes EndRow fail.
func (a *Appender) Text(col int, s string) {
	if !utf8.ValidString(s) {
		a.bad = fmt.Errorf("column %d is not UTF-8", col)
		return
	}
	a.bytes(col, s)
}

// TextOrNull sets a VARCHAR, or NULL for "".
func (a *Appender) TextOrNull(col int, s string) {
	if s == "" {
		a.Null(col)
		return
	}
	a.Text(col, s)
}

// Blob sets a BLOB.
func (a *Appender) Blob(col int, b []byte) { a.bytes(col, unsafe.String(unsafe.SliceData(b), len(b))) }

func (a *Appender) bytes(col int, s string) {
	cell := unsafe.Add(a.columns[col].data, a.row*stringSize)
	*(*uint32)(cell) = uint32(len(s))
	in := unsafe.Slice((*byte)(unsafe.Add(cell, 4)), inlineSize)
	if len(s) <= inlineSize {
		clear(in[copy(in, s):])
		return
	}
	copy(in[:prefixSize], s)
	// Written as a number: what lies there now is DuckDB's, and Go's write
	// barrier must not take it for a pointer.
	*(*uintptr)(unsafe.Add(cell, 8)) = uintptr(a.keep(s))
}

// keep copies s to where it stays put until the chunk has been appended.
func (a *Appender) keep(s string) unsafe.Pointer {
	if len(s) > len(a.free) {
		a.free = a.block(len(s))
	}
	p := unsafe.Pointer(unsafe.SliceData(a.free))
	copy(a.free, s)
	a.free = a.free[len(s):]
	return p
}

// block returns the next block with room for size bytes; blocks of the usual
// size are used again for the next chunk.
func (a *Appender) block(size int) []byte {
	if size > blockSize {
		b := make([]byte, size)
		a.pinner.Pin(&b[0])
		return b
	}
	if a.used == len(a.blocks) {
		b := make([]byte, blockSize)
		a.pinner.Pin(&b[0])
		a.blocks = append(a.blocks, b)
	}
	a.used++
	return a.blocks[a.used-1]
}

// EndRow completes the row. After an error nothing more may be appended.
func (a *Appender) EndRow() error {
	if a.bad != nil {
		return a.bad
	}
	a.row++
	if a.row < int(bindings.VectorSize()) {
		return nil
	}
	return a.appendChunk()
}

func (a *Appender) appendChunk() error {
	if a.row == 0 {
		return nil
	}
	bindings.DataChunkSetSize(a.chunk, bindings.IdxT(a.row))
	if bindings.AppendDataChunk(a.handle, a.chunk) == bindings.StateError {
		return a.failure()
	}
	bindings.DataChunkReset(a.chunk)
	a.begin()
	return nil
}

// Flush hands all completed rows to the table. After an error the transaction
// must be rolled back.
func (a *Appender) Flush() error {
	if err := a.appendChunk(); err != nil {
		return err
	}
	if bindings.AppenderFlush(a.handle) == bindings.StateError {
		return a.failure()
	}
	return nil
}

// Close releases the appender and drops rows that were not flushed.
func (a *Appender) Close() {
	if a.handle.Ptr != nil {
		// Destroying an appender flushes it, so what is left is dropped first.
		bindings.AppenderClear(a.handle)
	}
	bindings.AppenderDestroy(&a.handle)
	bindings.DestroyDataChunk(&a.chunk)
	for i := range a.types {
		bindings.DestroyLogicalType(&a.types[i])
	}
	a.pinner.Unpin()
	a.types, a.blocks, a.free = nil, nil, nil
}

func (a *Appender) failure() error {
	data := bindings.AppenderErrorData(a.handle)
	defer bindings.DestroyErrorData(&data)
	return &Error{Type: bindings.ErrorDataErrorType(data), Message: bindings.ErrorDataMessage(data)}
}

func set[T any](a *Appender, col int, v T) {
	*(*T)(unsafe.Add(a.columns[col].data, uintptr(a.row)*unsafe.Sizeof(v))) = v
}

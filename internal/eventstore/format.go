package eventstore

// EngineFormat names the format of the engine's file.
func EngineFormat() string { return "duckdb " + storageVersion }

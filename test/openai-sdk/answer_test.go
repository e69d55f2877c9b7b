//go:build openaisdk

package openaisdk

// What the server answers with.
const (
	plain = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-x-2026","choices":[{"index":0,"message":{"role":"assistant","content":"Hello, wörld 🙂","refusal":null},"finish_reason":"stop","logprobs":null}],
"usage":{"prompt_tokens":117231,"completion_tokens":17,"total_tokens":117248,"prompt_tokens_details":{"cached_tokens":115584},"completion_tokens_details":{"reasoning_tokens":9}}}`

	called = `{"id":"chatcmpl-2","object":"chat.completion","created":1,"model":"gpt-x-2026","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[
{"id":"call_a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}},{"id":"call_b","type":"function","function":{"name":"weather","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}}`

	refused = `{"id":"chatcmpl-3","object":"chat.completion","created":1,"model":"gpt-x-2026","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I will not."},"finish_reason":"stop"}],
"usage":{"prompt_tokens":20,"completion_tokens":4,"total_tokens":24,"prompt_tokens_details":null}}`

	head = `"id":"chatcmpl-4","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026"`

	// Comments, an event of several lines, line ends of both kinds, and a
	// text with a letter of four bytes.
	streamed = ": keep-alive\n\n" +
		"data: {" + head + `,"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}` + "\n\n" +
		"data: {" + head + ",\r\ndata: " + `"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"usage":null}` + "\r\n\r\n" +
		": keep-alive\r\n\r\n" +
		"data: {" + head + `,"choices":[{"index":0,"delta":{"content":"lo\n🙂 data: x"},"finish_reason":null}],"usage":null}` + "\n\n" +
		"data: {" + head + `,"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":null}` + "\n\n" +
		"data: {" + head + `,"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":2}}}` + "\n\n" +
		"data: [DONE]\n\n"

	streamedCalls = "data: {" + head + `,"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}` + "\n\n" +
		"data: {" + head + `,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}]}` + "\n\n" +
		"data: {" + head + `,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"finish_reason":null}]}` + "\n\n" +
		"data: {" + head + `,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]},"finish_reason":null}]}` + "\n\n" +
		"data: {" + head + `,"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"weather","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n" +
		"data: {" + head + `,"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n" +
		"data: {" + head + `,"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":12,"total_tokens":42}}` + "\n\n" +
		"data: [DONE]\n\n"

	// unfinished ends as a stream does, but the answer has not.
	unfinished = "data: {" + head + `,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}` + "\n\n" + "data: [DONE]\n\n"

	// broken tells of an error in its middle.
	broken = "data: {" + head + `,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}` + "\n\n" +
		`data: {"error":{"message":"the model has failed","type":"server_error","code":null}}` + "\n\n"
)

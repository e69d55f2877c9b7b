// Makes the calls of calls.json with OpenAI's own client, against the server at
// argument 1, and prints what it has read of each, one line of JSON a call.
import { readFileSync } from 'node:fs';
import OpenAI from 'openai';

const [baseURL, calls] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'sk-secret-of-the-test', maxRetries: 0 });

// toolCalls are those of a message, in our form.
const toolCalls = (message) =>
  (message.tool_calls ?? []).map((c) => ({ id: c.id, type: c.type, name: c.function.name, arguments: c.function.arguments }));

// usage is what was counted, in our form.
const usage = (u) => ({
  input: u?.prompt_tokens ?? 0,
  output: u?.completion_tokens ?? 0,
  cached: u?.prompt_tokens_details?.cached_tokens ?? 0,
  reasoning: u?.completion_tokens_details?.reasoning_tokens ?? 0,
});

const read = (c) => ({
  text: c.choices[0].message.content ?? '',
  refusal: c.choices[0].message.refusal ?? '',
  tool_calls: toolCalls(c.choices[0].message),
  finish_reason: c.choices[0].finish_reason,
  model: c.model,
  usage: usage(c.usage),
});

for (const call of JSON.parse(readFileSync(calls, 'utf8'))) {
  const options = { headers: { 'Idempotency-Key': call.key } };
  let out;
  try {
    if (call.stream) {
      const params = { ...call.params, stream_options: { include_usage: true } };
      const deltas = [];
      const stream = client.chat.completions.stream(params, options);
      stream.on('content', (delta) => deltas.push(delta));
      out = { ...read(await stream.finalChatCompletion()), deltas };
    } else {
      out = read(await client.chat.completions.create(call.params, options));
    }
  } catch (e) {
    out = { error: e.constructor.name, status: e.status ?? 0, message: e.message };
  }
  console.log(JSON.stringify(out));
}

// Scripts for the model servers, as lines of a prompt that start with `@`. The server holds no
// conversation: the number of tool results after the prompt decides which step is next.
import { randomUUID } from 'node:crypto';

/**
 * | Line | Effect |
 * | --- | --- |
 * | `@say TEXT` | says the text |
 * | `@big N` | says N characters |
 * | `@slow N` | says N words, one every 20 ms |
 * | `@run COMMAND` | calls the agent's shell tool |
 * | `@start COMMAND` | the same, and goes on while the command runs, where the agent can |
 * | `@edit PATH TEXT` | calls the agent's edit tool to create a file |
 * | `@question TEXT` | calls the agent's question tool |
 * | `@mcp SERVER TOOL JSON` | calls the tool of an MCP server with the arguments |
 * | `@result` | says the result of the last tool call |
 * | `@history` | says what the model said in earlier turns, joined by `\|` |
 * | `@drop` | breaks the stream once, within a text |
 * | `@cut` | breaks the stream once, after the tool call before it and before the stream's end |
 * | `@status CODE` | fails with the HTTP status once; `@status CODE always` every time |
 * | `@hang` | sends no more until the client disconnects; `@hang once` only the first time |
 */
interface Step {
  word: string;
  rest: string;
}

type ToolName = 'run' | 'start' | 'edit' | 'question' | 'mcp';

export type Part =
  | { kind: 'text'; text: string; slow: boolean }
  | { kind: 'tool'; tool: ToolName; argument: string; callId: string };

/** One response: its parts, then its end. */
export interface Plan {
  parts: Part[];
  end: 'complete' | 'break' | 'hang' | { status: number };
}

/** Facts of a request about its conversation. */
export interface Conversation {
  /** Text of the last prompt that has a script; null without one. */
  prompt: string | null;
  /** Texts of the results of the tool calls after that prompt. */
  results: string[];
  /** Texts of the model before that prompt. */
  earlier: string[];
}

export const hasScript = (text: string): boolean => /^@\w/m.test(text);

const TOOLS: ReadonlySet<string> = new Set(['run', 'start', 'edit', 'question', 'mcp']);

/** Plans the response to a conversation. `spent` counts the failures that were already served. */
export function planOf({ prompt, results, earlier }: Conversation, spent: Map<string, number>): Plan {
  if (prompt === null) return { parts: [text('ok')], end: 'complete' };
  const steps = stepsOf(prompt);
  const failsNow = (index: number, always = false): boolean => {
    const key = `${index} ${prompt}`;
    const count = spent.get(key) ?? 0;
    spent.set(key, count + 1);
    return always || count === 0;
  };

  const parts: Part[] = [];
  for (let index = firstStep(steps, results.length); index < steps.length; index += 1) {
    const { word, rest } = steps[index] ?? { word: '', rest: '' };
    if (TOOLS.has(word)) {
      parts.push({ kind: 'tool', tool: word as ToolName, argument: rest, callId: `call_${randomUUID()}` });
      const cut = steps[index + 1]?.word === 'cut' && failsNow(index + 1);
      return { parts, end: cut ? 'break' : 'complete' };
    }
    if (word === 'say') parts.push(text(rest));
    if (word === 'big') parts.push(text('x'.repeat(Number(rest))));
    if (word === 'slow') parts.push({ kind: 'text', text: 'word '.repeat(Number(rest)), slow: true });
    if (word === 'result') parts.push(text(results.at(-1) ?? 'no result'));
    if (word === 'history') parts.push(text(earlier.join('|')));
    if (word === 'hang' && (rest !== 'once' || failsNow(index))) return { parts, end: 'hang' };
    if (word === 'drop' && failsNow(index)) return { parts: [...parts, text('lost')], end: 'break' };
    const [status, always] = rest.split(' ');
    if (word === 'status' && failsNow(index, always === 'always'))
      return { parts: [], end: { status: Number(status) } };
  }
  return { parts: parts.length === 0 ? [text('done')] : parts, end: 'complete' };
}

/** The tool of a step `mcp`, by the name that agents give it, and its arguments. */
export function mcpCallOf(argument: string): { name: string; input: Record<string, unknown> } {
  const [, server = '', tool = '', input = '{}'] = /^(\S+) (\S+) ?(.*)$/.exec(argument) ?? [];
  return { name: `mcp__${server}__${tool}`, input: JSON.parse(input) as Record<string, unknown> };
}

const text = (text: string): Part => ({ kind: 'text', text, slow: false });

function stepsOf(prompt: string): Step[] {
  return [...prompt.matchAll(/^@(\w+) ?(.*)$/gm)].map(([, word = '', rest = '']) => ({ word, rest }));
}

/** Index of the step after the given number of tool calls. */
function firstStep(steps: readonly Step[], toolResults: number): number {
  let calls = 0;
  const index = steps.findIndex((step) => {
    if (calls === toolResults) return true;
    if (TOOLS.has(step.word)) calls += 1;
    return false;
  });
  return index === -1 ? steps.length : index;
}

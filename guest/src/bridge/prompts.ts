// Pending approvals of a session. The oldest is shown and can be answered; request ids come from a
// persistent counter and are never reused.
import { AGENT_PROMPT } from '@berth/protocol/agent-errors.ts';
import type { GuestAgentView, GuestPromptText } from '@berth/protocol/agents.ts';
import type { AgentPrompt, Decision } from './driver.ts';

interface Pending {
  shown: NonNullable<GuestAgentView['prompt']>;
  prompt: AgentPrompt;
  answer(decision: Decision): void;
}

export class Prompts {
  #pending: Pending[] = [];

  get shown(): GuestAgentView['prompt'] {
    return this.#pending[0]?.shown ?? null;
  }

  /** The shown approval with its text. */
  text(isFull: boolean): GuestPromptText | null {
    const first = this.#pending[0];
    if (first === undefined) return null;

    const { title, detail, workingDirectory } = first.prompt;
    const whole = detail.toWellFormed();
    const short = cut(whole, isFull ? AGENT_PROMPT.fullBytes : AGENT_PROMPT.detail, isFull);
    return {
      ...first.shown,
      title: cut(title.toWellFormed().replaceAll('\n', ' '), AGENT_PROMPT.title, false),
      detail: short,
      truncated: short.length < whole.length,
      workingDirectory: workingDirectory === null ? null : cut(workingDirectory.toWellFormed(), 4_096, false),
    };
  }

  /** Returns the function that withdraws the approval; true if it was pending. */
  add(shown: Pending['shown'], prompt: AgentPrompt, answer: Pending['answer']): () => boolean {
    const pending = { shown, prompt, answer };
    this.#pending.push(pending);
    return () => {
      const before = this.#pending.length;
      this.#pending = this.#pending.filter((one) => one !== pending);
      return this.#pending.length < before;
    };
  }

  /** The shown approval, if it has this id. */
  first(requestId: number | string): Pending | null {
    const [first] = this.#pending;
    return first?.shown.requestId === requestId ? first : null;
  }

  removeFirst(): void {
    this.#pending.shift();
  }

  clear(): void {
    this.#pending = [];
  }
}

/** The start of a text, without half a character; `limit` in bytes or UTF-16 units. */
export function cut(text: string, limit: number, isBytes: boolean): string {
  if (isBytes) {
    const bytes = Buffer.from(text);
    if (bytes.length <= limit) return text;

    let end = limit;
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;

    return bytes.toString('utf8', 0, end);
  }
  if (text.length <= limit) return text;

  const last = text.charCodeAt(limit - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? limit - 1 : limit);
}

// Text of an approval, as shown to a person. The guest is hostile, whatever its bridge does. Pure.
import { AGENT_PROMPT_CHARACTERS } from '@berth/contract/route/limits.ts';
import type { GuestPromptText } from '@berth/protocol/agents.ts';
import { shownText } from '../shown-text.ts';

export function shownPrompt(prompt: GuestPromptText, form: 'short' | 'full'): GuestPromptText {
  const line = (text: string): string => shownText(text, { isLine: true, limit: AGENT_PROMPT_CHARACTERS.short }).text;
  const detail = shownText(prompt.detail, { isLine: false, limit: AGENT_PROMPT_CHARACTERS[form] });
  return {
    ...prompt,
    title: line(prompt.title),
    detail: detail.text,
    truncated: prompt.truncated || detail.isCut,
    workingDirectory: prompt.workingDirectory === null ? null : line(prompt.workingDirectory),
  };
}

// Drivers of the bridge, by agent.
import { startClaude } from '../claude/driver.ts';
import { startCodex } from '../codex/driver.ts';
import { startCodexTerminal } from '../codex/terminal.ts';
import type { AgentDriver, StartDriver, TerminalStart } from '../driver.ts';

export const DRIVERS: Readonly<Record<string, StartDriver>> = { agent_one: startCodex, agent_two: startClaude };

/** Drivers of programs in terminals that take part in their conversations. */
export const TERMINAL_DRIVERS: Readonly<
  Record<string, (start: TerminalStart, sessionId: string) => Promise<AgentDriver>>
> = { agent_one: startCodexTerminal };

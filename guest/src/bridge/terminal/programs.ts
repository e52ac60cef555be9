// The agents' own programs, as people use them, whose conversations a bridge takes no part in.
import { programOf } from '../agent-process.ts';
import { claudeEnvironment } from '../claude/program.ts';
import type { DriverStart } from '../driver.ts';
import type { TerminalProgram } from './tmux.ts';

export const TERMINAL_PROGRAMS: Readonly<Record<string, (start: DriverStart) => TerminalProgram>> = {
  agent_two: (start) => ({
    file: programOf(start, 'claude'),
    // Said explicitly: in the default mode `auto` a model approves.
    args: ['--permission-mode', 'default'],
    env: claudeEnvironment(start.gatewayUrl),
  }),
};

/** For tests: repeats lines, and exits at `quit`. */
export function scriptedTerminal(): TerminalProgram {
  const script =
    'echo "scripted agent $$"; while read -r line; do [ "$line" != quit ] || exit 0; echo "heard: $line"; done';
  return { file: '/bin/sh', args: ['-c', script], env: {} };
}

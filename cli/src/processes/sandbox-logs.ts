// `berth logs` without a process: prints why a sandbox is as it is, the console last.
import type { SandboxDiagnostics } from '@berth/sdk';
import { plainLines, plainText } from '../output/plain-text.ts';
import { instant, instantSince } from '../output/time.ts';
import type { CliContext } from '../program/context.ts';

const STARTS: Readonly<Record<string, string>> = {
  create: 'created',
  wake: 'woken from its snapshot',
  boot: 'booted from its disk',
};

export async function showDiagnostics({ connect, out, signal }: CliContext, sandboxId: string): Promise<void> {
  const { berth } = await connect();
  const answer = await berth.raw.getDiagnostics({ path: { sandboxId }, signal });
  if (out.json) {
    out.object(answer);
    return;
  }
  const { sandboxId: id, status, failure, lastStart, clone, events, ...found } = answer.diagnostics;
  const reason = failure ?? clone?.reason ?? null;
  const why = reason === null ? '' : `: ${plainText(reasonText(reason))}`;
  out.line(`${id} is ${status === 'failed' ? out.style('red', status) : plainText(status)}${why}`);
  if (status === 'failed') out.line(`  ${remedyOf(answer.diagnostics)}`);
  out.line();
  out.fields([
    ['failed', failure && instantSince(failure.at)],
    [
      'last start',
      `${STARTS[lastStart.kind] ?? lastStart.kind} ${instantSince(lastStart.at)}` +
        (lastStart.reason === null ? '' : `: ${lastStart.reason}`),
    ],
    ['clone', clone && `${clone.status}${clone.reason === null ? '' : `: ${reasonText(clone.reason)}`}`],
  ]);
  const section = (title: string, lines: readonly string[]): void => {
    out.line(`\n${out.style('bold', title)}`);
    lines.forEach((line) => out.line(`  ${line}`));
  };
  const { output = null } = clone ?? {};
  if (output !== null) section(`Output of git${clone?.truncated === true ? ', its end' : ''}`, linesOf(output));
  section(
    'Last events',
    events.map(({ at, kind, reason }) => plainText(`${instant(at)}  ${kind}${reason === null ? '' : `: ${reason}`}`)),
  );
  section(...consoleOf(found));
}

function remedyOf({ sandboxId, wakesFrom }: SandboxDiagnostics): string {
  return wakesFrom === null
    ? `it cannot be woken: delete it with berth sandbox rm ${sandboxId}`
    : `berth sandbox wake ${sandboxId} starts it from its ${plainText(wakesFrom)}`;
}

function consoleOf({
  console,
  consoleMissing,
}: Pick<SandboxDiagnostics, 'console' | 'consoleMissing'>): [title: string, lines: string[]] {
  if (console === null) return ['Console', [plainText(consoleMissing?.message ?? 'unknown')]];
  const start = console.booted ? 'since its boot' : 'since it was restored, without a boot';
  const title = `Console, ${console.truncated ? 'its end' : start}`;
  return [title, console.text.trim() === '' ? ['(nothing was written)'] : linesOf(console.text)];
}

function linesOf(text: string): string[] {
  return plainLines(text.replace(/\n+$/, ''));
}

function reasonText({ code, message }: { code: string; message: string }): string {
  return `${message} (${code})`;
}

// The check `systemd`: the service of an installation before and after a reboot.
import { Boots, type Bench } from './boots.ts';

export async function rebootInstalled(bench: Bench): Promise<number> {
  const [driver = 'qemu'] = bench.args;
  const boots = await Boots.of(bench);
  const step = (name: string): { name: string; command: string } => ({
    name,
    command: `node lab/inside/installed.ts ${name} ${driver}`,
  });
  const before = await boots.run({ steps: [step('before')] }, async (machine) => {
    const code = await machine.exitCode;
    if (code === 0) await machine.off();
    return code;
  });
  if (before !== 0) return before;
  return await boots.run({ steps: [step('after')] }, async (machine) => machine.exitCode);
}

// The process of a gateway, as the kernel shows it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

/** Pid of the gateway's program: the last descendant of what the host daemon started. */
export async function programOf(pid: number | null): Promise<number> {
  assert.ok(pid !== null);
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim();
  return children === '' ? pid : programOf(Number(children.split(' ')[0]));
}

export async function fieldsOf(pid: number): Promise<Map<string, string>> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8');
  return new Map(
    text.split('\n').map((line): [string, string] => {
      const [field = '', value = ''] = line.split(/:(.*)/s);
      return [field, value.trim()];
    }),
  );
}

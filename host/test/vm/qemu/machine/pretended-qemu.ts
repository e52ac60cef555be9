// A fake QEMU of devices only, at the other end of a QMP connection: plugged devices, and those
// that its guest keeps. For tests of failing steps.
import { duplexPair } from 'node:stream';
import type { Socket } from 'node:net';
import { VCPU_MAX } from '../../../../src/vm/machine-size.ts';
import { QmpSession } from '../../../../src/vm/qemu/machine/qmp.ts';

type Arguments = Record<string, string | number>;

const MIB = 2 ** 20;
const GIB = 2 ** 30;

export class PretendedQemu {
  readonly qmp: QmpSession;
  readonly devices = new Set<string>();
  readonly #objects = new Map<string, number>();
  diskGib = 10;
  /** Response to `info ramblock`. */
  ramBlocks = '';
  /** Devices that the guest refuses to release. */
  readonly keeps = new Set<string>();
  /** Called before each command; a throw refuses the command. */
  before: (command: string, parameters: Arguments) => void = () => {};

  constructor() {
    const [near, far] = duplexPair();
    this.qmp = new QmpSession(near as Socket, () => undefined);
    let text = '';
    far.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        const {
          execute,
          id,
          arguments: parameters,
        } = JSON.parse(text.slice(0, end)) as { execute: string; id: number; arguments?: Arguments };
        text = text.slice(end + 1);
        const tell = (event: object): boolean => far.write(`${JSON.stringify(event)}\n`);
        tell({ id, ...this.#answer(execute, parameters ?? {}, tell) });
      }
    });
  }

  #answer(command: string, parameters: Arguments, tell: (event: object) => void): object {
    try {
      this.before(command, parameters);
      return { return: this.#execute(command, parameters, tell) };
    } catch (error) {
      return { error: { class: 'GenericError', desc: (error as Error).message } };
    }
  }

  #execute(command: string, parameters: Arguments, tell: (event: object) => void): unknown {
    const id = String(parameters['id']);
    switch (command) {
      case 'query-kvm':
        return { enabled: true };
      case 'query-hotpluggable-cpus':
        return Array.from({ length: VCPU_MAX }, (_, core) => {
          const path = core === 0 ? '/machine/unattached/device[0]' : `/machine/peripheral/cpu${core}`;
          return {
            type: 'cpu',
            props: { 'core-id': core },
            ...(core === 0 || this.devices.has(`cpu${core}`) ? { 'qom-path': path } : {}),
          };
        });
      case 'query-memory-devices':
        return this.#modules().map((module, slot) => {
          const size = this.#objects.get(`${module}-memory`) ?? 0;
          return {
            type: 'dimm',
            data: { id: module, memdev: `/objects/${module}-memory`, addr: (4 + 64 * slot) * GIB, size, slot },
          };
        });
      case 'query-named-block-nodes':
        return [{ 'node-name': 'disk', image: { 'virtual-size': this.diskGib * GIB } }];
      case 'qom-list':
        return [...this.#objects.keys()].map((name) => ({ name, type: 'child<memory-backend-ram>' }));
      case 'object-add':
        this.#objects.set(id, Number(parameters['size']));
        return {};
      case 'object-del':
        this.#objects.delete(id);
        return {};
      case 'device_add':
        this.devices.add(id);
        return {};
      case 'device_del':
        if (this.keeps.has(id)) tell({ event: 'DEVICE_UNPLUG_GUEST_ERROR', data: { device: id } });
        else this.devices.delete(id);

        return {};
      case 'block_resize':
        this.diskGib = Number(parameters['size']) / GIB;
        return {};
      case 'migrate-incoming':
        return {};
      case 'query-migrate':
        return { status: 'completed' };
      case 'human-monitor-command':
        return this.ramBlocks;
      default:
        throw new Error(`The command ${command} has not been found`);
    }
  }

  #modules(): string[] {
    return [...this.devices].filter((id) => id.startsWith('module'));
  }

  /** Memory in modules that have an object. */
  get memoryMib(): number {
    return [...this.#objects.values()].reduce((sum, bytes) => sum + bytes / MIB, 0);
  }
}

// Templates of this host's VMs with their images, opened and verified once. New VMs use the current
// one; a sleeping VM, or one with only a disk left, names the template it was made from. Builds
// nothing.
import { basename, join } from 'node:path';
import { ImageError, openImage, type Image } from '@berth/image/image-folder.ts';
import { assertSpoken } from '../../../guest/protocol-version.ts';
import { DriverError } from '../../driver.ts';
import { readProbeFor, type Probe } from './accelerator.ts';
import type { BootFiles } from '../machine/argv.ts';
import { readHostPlatform } from '../machine/host-platform.ts';
import { kernelCommandLine, type Accelerator, type Virtualization } from '../machine/machine.ts';
import { readQemuVersion, type QemuVersion } from '../machine/qemu-version.ts';
import {
  closeTemplatesFolder,
  findTemplate,
  openTemplate,
  templateFacts,
  virtualizationOf,
  type Template,
} from './template.ts';

/** Properties shared by all VMs of one template. */
export interface RestoreBase extends Virtualization {
  template: Template;
  image: Image;
  boot: BootFiles;
  version: QemuVersion;
}

export class Bases {
  /** The base of new VMs. */
  readonly current: RestoreBase;
  /** Why this accelerator was selected, for the operator. */
  readonly reason: string;
  /** Processor models that VMs can have under KVM on this host. */
  readonly cpuModels: readonly string[];
  readonly #cacheFolder: string;
  readonly #opened = new Map<string, Promise<RestoreBase>>();

  private constructor(cacheFolder: string, current: RestoreBase, { reason, cpuModels }: Probe) {
    this.#cacheFolder = cacheFolder;
    this.current = current;
    this.reason = reason;
    this.cpuModels = cpuModels;
    this.#opened.set(current.template.templateId, Promise.resolve(current));
  }

  /**
   * Opens the image and its template for this host. Rejects with {@link DriverError} or ImageError
   * that names the missing part.
   */
  static async open(cacheFolder: string, imageFolder: string): Promise<Bases> {
    const [version, host, image] = await Promise.all([
      readQemuVersion(),
      readHostPlatform(),
      openImage(imageFolder, { verify: 'remembered' }),
    ]);
    await closeTemplatesFolder(cacheFolder);
    const probe = await readProbeFor(cacheFolder, version, host);
    if (probe === null) {
      throw new DriverError(
        `the accelerator was not probed yet for QEMU ${version.text} on this kernel and processor: run berth up`,
      );
    }
    const facts = templateFacts(image.imageId, version, probe, host);
    const template = await findTemplate(cacheFolder, facts);
    if (template === null)
      throw new DriverError(`there is no template of image ${image.imageId} in ${cacheFolder}: run berth up`);

    return new Bases(cacheFolder, baseOf(template, image, version), probe);
  }

  /**
   * The template of that id with its image, from the cache folder. Rejects with {@link DriverError}
   * if either is missing or incomplete.
   */
  async of(templateId: string): Promise<RestoreBase> {
    const opening = this.#opened.get(templateId) ?? this.#open(templateId);
    this.#opened.set(templateId, opening);
    try {
      return await opening;
    } catch (error) {
      // A missing part may be there the next time.
      this.#opened.delete(templateId);
      throw error;
    }
  }

  /** Whether VMs with this processor run on this host. */
  canRun({ accelerator, cpuModel }: Virtualization): boolean {
    return accelerator === 'tcg' || (this.current.accelerator === 'kvm' && this.cpuModels.includes(cpuModel));
  }

  /** As {@link of}, for a boot: with a processor of this host if it lacks that of the template. */
  async forBoot(templateId: string): Promise<RestoreBase> {
    const base = await this.of(templateId);
    if (this.canRun(base)) return base;

    const { accelerator, cpuModel } = this.current;
    // The template's time stamp counter ran at the rate of another accelerator.
    return { ...base, accelerator, cpuModel, boot: bootFilesOf(base.image, accelerator, null) };
  }

  async #open(templateId: string): Promise<RestoreBase> {
    const template = await openTemplate(this.#cacheFolder, templateId);
    if (template === null) throw new DriverError(`the VM's template ${templateId} is missing in ${this.#cacheFolder}`);

    const { imageId } = template.facts;
    const { current } = this;
    const imageFolder =
      imageId === current.template.facts.imageId ? current.image.folder : join(this.#cacheFolder, 'image', imageId);
    try {
      return baseOf(template, await openImage(imageFolder, { verify: 'remembered' }), current.version);
    } catch (error) {
      throw error instanceof ImageError
        ? new DriverError(`the image of the VM's template: ${error.message}`, { cause: error })
        : error;
    }
  }
}

/** Rejects a guest daemon that this host does not understand. */
function baseOf(template: Template, image: Image, version: QemuVersion): RestoreBase {
  assertSpoken(image.record.guestProtocol, `the guest daemon of image ${image.imageId}`);
  const virtualization = virtualizationOf(template.facts);
  return {
    template,
    image,
    boot: bootFilesOf(image, virtualization.accelerator, template.tscKhz),
    ...virtualization,
    version,
  };
}

/**
 * Boot files of the image. With `tscKhz` of an earlier boot, the kernel skips the calibration that
 * a busy host could distort.
 */
export function bootFilesOf(image: Image, accelerator: Accelerator, tscKhz: number | null): BootFiles {
  const known = accelerator === 'tcg' && tscKhz !== null ? [`tsc_early_khz=${tscKhz}`] : [];
  return {
    kernel: basename(image.kernelPath),
    initramfs: basename(image.initramfsPath),
    commandLine: [...image.kernelArguments, kernelCommandLine(accelerator), ...known].join(' '),
  };
}

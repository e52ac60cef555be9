// What runs in the sandbox at the other end of a copy, as text for its /bin/sh: it finds out what
// is meant by the path there, and hands over to its tar. What it says on stderr is for people;
// told-failure.ts shortens what tar says.
import { quoted } from '../commands/command-text.ts';

/**
 * Packs what is named, or, to follow it, what it leads to. The `x` keeps line ends at the end of a
 * name, which a shell's substitution takes away.
 */
const PACK = String.raw`
f=$1
case $f in /*) ;; *) f=./$f ;; esac
[ -e "$f" ] || [ -L "$f" ] || { echo "there is no such file or folder" >&2; exit 1; }
if [ "$2" = follow ]; then f=$(readlink -fn -- "$f" && echo x) || exit 1; f=${'$'}{f%x}; fi
case $f in
  */ | */. | */..) d=$f b=. ;;
  *) d=${'$'}{f%/*}/ b=./${'$'}{f##*/} ;;
esac
exec tar --create --format=gnu --hard-dereference --file=- --directory="$d" -- "$b"
`;

/**
 * What came is unpacked beside its place and gets its name when all of it is there; the content of
 * a folder goes straight into one that exists.
 */
const UNPACK = String.raw`
to=$1 name=$2 kind=$3 mode=$4
no() { echo "$1" >&2; exit 1; }
case $to in /*) ;; *) to=./$to ;; esac
if [ -d "$to" ]; then
  t=${'$'}{to%/}
  [ -z "$name" ] || t=$t/$name
else
  case $to in
    */ | */.) [ "$kind" = folder ] || no "there is no such folder" ;;
  esac
  t=${'$'}{to%/.}
  while [ "$t" != "${'$'}{t%/}" ]; do t=${'$'}{t%/}; done
fi
if [ "$kind" = file ] && [ -L "$t" ]; then
  r=$(readlink -en -- "$t" && echo x) || no "a symlink that leads nowhere is there"
  t=${'$'}{r%x}
fi
take() { tar --extract --file=- --preserve-permissions --no-same-owner "$@"; }
if [ "$kind" = folder ] && [ -d "${'$'}{t:-/}" ]; then
  take --strip-components=1 --directory="${'$'}{t:-/}"
  exit
fi
if [ "$kind" = folder ]; then
  [ ! -e "$t" ] && [ ! -L "$t" ] || no "what is there is no folder"
elif [ ! -L "$t" ] && [ -e "$t" ]; then
  [ ! -d "$t" ] || no "a folder is there"
  [ -f "$t" ] || no "what is there is no file"
fi
p=${'$'}{t%/*}/
[ -d "$p" ] || no "there is no folder to copy it into"
s=$(mktemp -d "$p.berth-cp-XXXXXXXX") || exit 1
trap 'chmod -R u+rwX -- "$s"; rm -rf -- "$s"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
take --directory="$s" || exit
mv -fT -- "$s/r" "$t" || exit
[ "$kind" != folder ] || chmod -- "$mode" "$t"
`;

/**
 * Writes the archive of a path to stdout: its root has the last part of the path as its name, or
 * none.
 */
export function packingScript(path: string, { follow }: { follow: boolean }): string {
  return script(PACK, [path, follow ? 'follow' : '']);
}

interface UnpackPlace {
  path: string;
  /** What it is called in a folder that is there; empty: the content goes into that folder. */
  name: string;
  kind: 'file' | 'folder' | 'link';
  /** Of a folder, at last. */
  mode: number;
}

/** Takes an archive from stdin whose root is `r`. */
export function unpackingScript({ path, name, kind, mode }: UnpackPlace): string {
  return script(UNPACK, [path, name, kind, (mode & 0o7777).toString(8)]);
}

function script(text: string, args: readonly string[]): string {
  return `exec sh -c ${quoted(text.trim())} sh ${args.map((arg) => quoted(arg)).join(' ')}`;
}

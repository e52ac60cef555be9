# Appends of the helper for file calls (after changes.pl, before program.pl):
#   append PATH LENGTH OFFSET MODE, then the content          `ok`. The file has exactly OFFSET bytes, or
#       is absent if OFFSET is 0; not a link. Each byte is written as it arrives, and stays whatever happens
#       after it. MODE: of a file that it makes. `sized SIZE`: the file has another size. `busy`: another
#       append to it runs
use strict;
our ($o_nofollow, $fsync, $piece, $peer, $transfers, $seconds);
my ($o_write, $o_make, $exclusively) = (1, 0301, 2);
my ($ABSENT, $PRESENT, $UNSUPPORTED) = (2, 17, 22);

# Opens the file of an append in the current folder, or makes it. Returns whether it was made.
sub open_appended {
  my ($name, $offset, $mode) = @_;
  # Made or removed by another call meanwhile.
  for (1 .. 16) {
    if (lstat $name) {
      my ($file) = open_regular($name, $o_write, $o_nofollow, 0);
      return ($file, 0);
    }
    refuse($! + 0) if $! != $ABSENT || $offset > 0;
    if (sysopen(my $file, $name, $o_make | $o_nofollow, $mode < 0 ? 0666 : $mode)) {
      $mode < 0 or chmod $mode, $file or refuse($! + 0);
      return ($file, 1);
    }
    refuse($! + 0) if $! != $PRESENT;
  }
  refuse('busy');
}

sub append_file {
  my ($path, $length, $offset, $mode) = @_;
  ($transfers, $piece) = (1, 65536);
  my ($folder, $name) = $path =~ m{^(.*/)([^/]+)$}s;
  refuse('directory') if !defined $name || $name eq '.' || $name eq '..';
  if ($offset > 0) { chdir $folder or refuse($! + 0); }
  else { enter($folder); }
  my ($file, $made) = open_appended($name, $offset, $mode);
  # One append at a time. The helper of a caller that is gone may still hold the lock.
  {
    local $SIG{ALRM} = sub { refuse('busy') };
    alarm(int($seconds / 3) || 1);
    flock($file, $exclusively) or refuse($! + 0);
    alarm $seconds;
  }
  # Moved or deleted while this call waited.
  my ($device, $inode, $size) = (stat $file)[0, 1, 7];
  my @now = lstat $name;
  refuse('changed') unless @now && $now[0] == $device && $now[1] == $inode;
  refuse("sized $size") if $size != $offset;
  defined sysseek($file, $offset, 0) or refuse($! + 0);
  for (my $rest = $length; $rest > 0;) {
    my $got = sysread($peer, my $part, $rest < $piece ? $rest : $piece);
    exit 1 unless $got;
    alarm $seconds;
    $rest -= $got;
    put_all($file, $part) or refuse($! + 0);
  }
  syscall($fsync, fileno($file)) == 0 || $! == $UNSUPPORTED or refuse($! + 0);
  flush_folder() if $made;
  say_all("ok\n");
}


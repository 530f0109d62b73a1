//! Pages of the program file that are needed only once.

/// Releases the pages of this program's or library's relocation table: the loader has processed it,
/// and nothing else needs it. The pages stay in the page cache but no longer count as this
/// process's memory, which saves 5 % to 10 % of the size of a large library. Does nothing if the
/// file has no such table, or the system does not support it.
pub fn give_back_relocations() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    // SAFETY: `visit` has the signature of the callback, ignores its data, which is null, and does
    // not unwind. `dl_iterate_phdr` calls it only before it returns, with valid arguments.
    unsafe {
        libc::dl_iterate_phdr(Some(own_file::visit), std::ptr::null_mut());
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod own_file {
    use std::ops::Range;

    use rustix::mm::Advice;

    use crate::region::PAGE_BYTES;

    /// Tags of the dynamic section, as the ELF format numbers them.
    const END: u64 = 0;
    const LIST: u64 = 7;
    const LIST_BYTES: u64 = 8;

    /// Examines a loaded file; returns 1 if it is the one with this code, which ends the iteration.
    ///
    /// # Safety
    /// `info` describes a file that stays loaded during the call.
    pub(super) unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        _data: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the caller vouches that `info` is valid. `dlpi_phdr` points to `dlpi_phnum`
        // program headers in the loaded file, aligned and initialised by the loader.
        let (base, headers) = unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (info.dlpi_addr as usize, headers)
        };
        let range = |header: &libc::Elf64_Phdr| {
            let start = base + header.p_vaddr as usize;
            start..start + header.p_memsz as usize
        };
        let mut loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let here = (super::give_back_relocations as fn()) as usize;
        if !loaded.clone().any(|header| range(header).contains(&here)) {
            return 0;
        }
        let entries = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC).map(range);
        // SAFETY: PT_DYNAMIC is the address range of the dynamic section of this file, loaded at
        // `base`.
        if let Some(list) = entries.and_then(|entries| unsafe { list(&entries, base) })
            && loaded.any(|header| {
                let (within, is_written) = (range(header), header.p_flags & libc::PF_W != 0);
                !is_written && within.start <= list.start && list.end <= within.end
            })
        {
            give_back(&list);
        }
        1
    }

    /// Returns the address range of the relocation table, if the entries name one.
    ///
    /// # Safety
    /// `entries` is the address range of the dynamic section of a file loaded at `base`.
    unsafe fn list(entries: &Range<usize>, base: usize) -> Option<Range<usize>> {
        let (mut start, mut bytes) = (None, None);
        for at in entries.clone().step_by(16) {
            // SAFETY: the caller vouches for the range, in which an entry of 16 bytes, aligned to
            // 8, begins every 16 bytes; the loop stops at the terminating entry.
            let [tag, value] = unsafe { *(at as *const [u64; 2]) };
            match tag {
                END => break,
                LIST => start = Some(value as usize),
                LIST_BYTES => bytes = Some(value as usize),
                _ => {}
            }
        }
        // Some loaders store an address here instead of an offset from the base.
        let start = start.map(|start| if start < base { start + base } else { start })?;
        Some(start..start.checked_add(bytes?)?)
    }

    fn give_back(list: &Range<usize>) {
        let first = list.start.next_multiple_of(PAGE_BYTES);
        let bytes = (list.end / PAGE_BYTES * PAGE_BYTES).saturating_sub(first);
        if bytes > 0 {
            // SAFETY: the range has only whole pages in a segment that is not writable, checked by
            // `visit`: the kernel drops them, and reads the same bytes from the file again at the
            // next access.
            let _ = unsafe { rustix::mm::madvise(first as *mut _, bytes, Advice::LinuxDontNeed) };
        }
    }
}

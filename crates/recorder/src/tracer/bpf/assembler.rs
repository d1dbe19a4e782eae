//! Instructions of the kernel's virtual machine, eight bytes each.

/// A register; `R10` points at the end of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Register {
    /// Results.
    R0,
    /// First argument.
    R1,
    /// Second argument.
    R2,
    /// Third argument.
    R3,
    /// Fourth argument.
    R4,
    /// Kept across calls.
    R6 = 6,
    /// Kept across calls.
    R7,
    /// Kept across calls.
    R8,
    /// Kept across calls.
    R9,
    /// The end of the stack.
    R10,
}

/// Functions of the kernel, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// `(map, key) -> value or 0`
    MapLookup = 1,
    /// `(map, key, value, flags)`
    MapUpdate = 2,
    /// `(map, key)`
    MapDelete = 3,
    /// `() -> monotonic time`
    Time = 5,
    /// `() -> process << 32 | thread`
    CurrentThread = 14,
    /// `(to, size, from) -> 0, or an error`
    ReadUser = 112,
    /// `(to, size, from) -> length with its zero, or an error`
    ReadUserText = 114,
    /// `(ring, size, flags) -> room or 0`
    RingReserve = 131,
    /// `(room, flags)`
    RingSubmit = 132,
}

/// A jump whose target is not known yet.
#[must_use]
pub struct Jump(usize);

/// A program that grows by one instruction at a time.
#[derive(Default)]
pub struct Assembler {
    code: Vec<u64>,
}

impl Assembler {
    /// The finished program.
    pub fn code(&self) -> &[u64] {
        &self.code
    }

    fn push(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let word = u64::from(opcode)
            | u64::from(from << 4 | to) << 8
            | u64::from(offset.cast_unsigned()) << 16
            | u64::from(immediate.cast_unsigned()) << 32;
        self.code.push(word);
    }

    /// `to = from`
    pub fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to as u8, from as u8, 0, 0);
    }

    /// `to = number`, sign extended.
    pub fn set(&mut self, to: Register, number: i32) {
        self.push(0xb7, to as u8, 0, 0, number);
    }

    /// `to += number`
    pub fn add(&mut self, to: Register, number: i32) {
        self.push(0x07, to as u8, 0, 0, number);
    }

    /// `to += from`
    pub fn add_register(&mut self, to: Register, from: Register) {
        self.push(0x0f, to as u8, from as u8, 0, 0);
    }

    /// `to -= from`
    pub fn subtract_register(&mut self, to: Register, from: Register) {
        self.push(0x1f, to as u8, from as u8, 0, 0);
    }

    /// `to >>= bits`, without a sign.
    pub fn shift_right(&mut self, to: Register, bits: i32) {
        self.push(0x77, to as u8, 0, 0, bits);
    }

    /// `to = from[offset]`, four bytes without a sign.
    pub fn load_half(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x61, to as u8, from as u8, offset, 0);
    }

    /// `to = from[offset]`, eight bytes.
    pub fn load(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x79, to as u8, from as u8, offset, 0);
    }

    /// `to[offset] = from`, eight bytes.
    pub fn store(&mut self, to: Register, offset: i16, from: Register) {
        self.push(0x7b, to as u8, from as u8, offset, 0);
    }

    /// `to = the map behind a descriptor`
    pub fn set_map(&mut self, to: Register, descriptor: i32) {
        const PSEUDO_MAP_FD: u8 = 1;
        self.push(0x18, to as u8, PSEUDO_MAP_FD, 0, descriptor);
        self.push(0, 0, 0, 0, 0);
    }

    /// `to = stack + offset`
    pub fn set_stack(&mut self, to: Register, offset: i32) {
        self.copy(to, Register::R10);
        self.add(to, offset);
    }

    /// `R0 = function(R1, …)`; `R1` to `R5` are lost.
    pub fn call(&mut self, function: Helper) {
        self.push(0x85, 0, 0, 0, function as i32);
    }

    /// Jumps if a register is zero.
    pub fn if_zero(&mut self, register: Register) -> Jump {
        self.push(0x15, register as u8, 0, 0, 0);
        Jump(self.code.len() - 1)
    }

    /// Jumps if a register is below zero.
    pub fn if_negative(&mut self, register: Register) -> Jump {
        self.push(0xc5, register as u8, 0, 0, 0);
        Jump(self.code.len() - 1)
    }

    /// Jumps if a register, without a sign, is below a number.
    pub fn if_below(&mut self, register: Register, number: i32) -> Jump {
        self.push(0xa5, register as u8, 0, 0, number);
        Jump(self.code.len() - 1)
    }

    /// Makes a jump lead to the next instruction.
    pub fn land(&mut self, jump: Jump) {
        let distance = self.code.len() - jump.0 - 1;
        self.code[jump.0] |= (distance as u64 & 0xffff) << 16;
    }

    /// Ends with 0.
    pub fn exit(&mut self) {
        self.set(Register::R0, 0);
        self.push(0x95, 0, 0, 0, 0);
    }
}

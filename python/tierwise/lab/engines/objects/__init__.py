"""Operations on objects, for engines that take no SQL."""
